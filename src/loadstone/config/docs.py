"""The tree as documents: a table of all keys for people, a JSON schema for editors.

Pure text; `make docs` writes it and a test holds that it is current.
"""

from __future__ import annotations

from typing import Any

import msgspec

from loadstone.config.fitting import SHAPE
from loadstone.config.options import Option, options
from loadstone.config.phases import HANDOVERS, KINDS, NAME
from loadstone.config.tree import Config

_HEAD = """\
# Configuration

Every setting of `loadstone profile` has a key and, but for `load.phases`, a flag. This table is made from the code
(`make docs`).

- A file (`-f bench.toml`, also `.yaml`) holds keys in sections; flags go over the file, the file over the
  defaults. Tables such as `endpoint.extra_inputs` are merged name by name, lists are replaced.
- `--set KEY=VALUE` reaches every key, also one name of a table: `--set endpoint.extra_inputs.top_k=5`. The
  value is JSON where it is JSON, else text.
- A switch has a flag for both ways: `--streaming`, `--no-streaming`.
- In a file `endpoint.url` is one address or a list of them; `endpoint.model` has several models as `"A,B"`.
  `load.request_rate` is a number or `"inf"`; a rate that changes is a list of points, `[[0, 1], [60, 20]]`, linear
  between them, before the first as the first, after the last as the last; two points at one moment are a jump.
- An unknown key or flag, a value out of range, and a setting that has no effect on the run are errors
  (exit code 2); nothing is started.
- The API key is best given in `LOADSTONE_API_KEY` or in a file (`--api-key-file`).
- Secrets are masked in everything that is written: the key, all headers and all parameters of a query (of `--url`,
  `--endpoint` and the other paths) but a few harmless ones, request fields that are named like a secret (`api_key`, `access_token`), the
  user and password of a proxy, `api_key` of `sim:`.
  What the server repeats of them is overwritten, in base64 and other spellings too. One place is left: a secret that
  is a request field is part of every request, and so of `plan/` and `inputs.json`; send it as a header if you can.
- A file that loadstone wrote has `***` where secrets were, and is refused until they are put in again.
- The proxy is the one of `--proxy`; `http_proxy`, `https_proxy`, `no_proxy` and their like are not heeded, since a
  measurement must not take another way than it says. The server is `https://`: the proxy is asked for a tunnel (CONNECT).
- Files for TLS are PEM, a key without a password; they are tried before anything starts.
- The preflight asks for one token, and for 16 when the server's refusal names the limit. It leaves a field out of the
  whole run when the server refuses it by name and a run can do without (`stream_options`, `continuous_usage_stats`,
  `ignore_eos`, `min_tokens`, `max_completion_tokens`); the report says so.
- `config.schema.json` beside this file is the JSON schema of the config file, for editors.

```toml
[endpoint]
url = "localhost:8000"
streaming = true
extra_inputs = { ignore_eos = true }

[input]
isl_mean = 512
osl_mean = 128

[load]
request_rate = 10
request_count = 200
```

## Phases

A run has a measured phase, with a warm-up before it when `load.warmup_request_count`, `load.warmup_sessions` or
`load.warmup_duration_s` says how long (the first one reached ends it), and a cooldown after it when
`load.cooldown_duration_s` or `load.cooldown_request_count` does. The warm-up has the shape of the measured load, with
ramps only of its own, and cancels nothing; a fixed schedule and a ramp by the number of the request are a closed loop
in it. The cooldown goes on as the measured load ended.

A file can have any other order of load instead, under `load.phases`:

```toml
[load]
request_rate = 10

[[load.phases]]
name = "warm"
kind = "warmup"
duration_s = 30

[[load.phases]]
name = "steady"
request_count = 3000

[[load.phases]]
name = "twice"
handover = "seamless"
request_rate = 20
request_count = 6000
```

- `name`: letters, digits, `-`, `_` and `.`, at most 40. `kind`: `measured` (default), `warmup` (before all measured
  ones) or `cooldown` (after them); a warm-up and a cooldown must have an end. `handover`: `drained` (default; it begins
  when all answers of the phase before have ended) or `seamless` (as soon as that one has nothing more to send).
- Every other key is one of `[load]`, with the phase's own value. What `[load]` says holds for every phase that does not
  say something else; a key of it that does nothing beside a phase's own is left out there. A phase's own key without
  effect is an error, and so is a key of `[load]` that no phase makes use of.
- `workers`, `failed_request_threshold` and the keys of warm-up and cooldown are for the whole run.

Shell completion: `eval "$(_LOADSTONE_COMPLETE=bash_source loadstone)"` (or `zsh_source`, `fish_source`).
"""


def table() -> str:
    """`docs/configuration.md`."""
    groups: dict[str, list[str]] = {}
    for option in options():
        groups.setdefault(option.group, []).append(_row(option))
    head = "| key | flags | value | default | meaning |\n|---|---|---|---|---|\n"
    parts = [f"\n## {group}\n\n{head}{''.join(rows)}" for group, rows in groups.items()]
    return _HEAD + "".join(parts)


def _row(option: Option) -> str:
    flags = " ".join(f"`{flag}`" for flag in option.flags) or "in a file"
    default = f"`{msgspec.json.encode(option.default).decode()}`" if option.default is not None else ""
    cells = [f"`{option.path}`", flags, option.expects, default, option.help.replace("<", "&lt;")]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def schema() -> str:
    """`docs/config.schema.json`."""
    tree: dict[str, Any] = msgspec.json.schema(Config)
    tree["$defs"]["LoadConfig"]["properties"]["phases"]["items"] = _phase()
    text = msgspec.json.format(msgspec.json.encode(tree, order="sorted"), indent=2)
    return text.decode() + "\n"


def _phase() -> dict[str, Any]:
    """A table of `load.phases`, which has no type of its own."""
    title = {
        "name": {"type": "string", "pattern": f"^{NAME.pattern}$"},
        "kind": {"enum": list(KINDS), "default": "measured"},
        "handover": {"enum": list(HANDOVERS), "default": "drained"},
    }
    shape = {name: {"$ref": f"#/$defs/LoadConfig/properties/{name}"} for name in SHAPE}
    return {
        "type": "object",
        "properties": title | shape,
        "required": ["name"],
        "additionalProperties": False,
    }
