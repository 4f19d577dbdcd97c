"""The configuration as it may be shown and stored: without its secrets.

One rule: what leaves the process (report, config.toml, command line, log) comes through here. What is a secret is
told by its name; where that says nothing, rather one too many.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from loadstone.config.spellings import spellings
from loadstone.config.tree import ENGINE, Config, EndpointConfig, ServerConfig
from loadstone.errors import UsageError
from loadstone.wire import proxy
from loadstone.wire.url import USERINFO

MASK = "***"
PATHS = ("reset_kv_cache_path", "profiler_start_path", "profiler_stop_path")
"""Of the server, each with a query that may hold a secret."""
LEAST = 6
"""Characters of a secret that is sought in what others say; shorter ones are found in words that mean something else,
and keep nobody out."""

_SECRET_NAME = re.compile(
    r"auth|key|token|secret|cookie|pass|pwd|cred|signature|session|jwt|bearer|(^|[^a-z])sig([^a-z]|$)",
    re.IGNORECASE,
)
"""Names of headers and of query parameters whose values are sought in what servers say, whatever they are."""
_HARMLESS = re.compile(
    r"accept(-charset|-encoding|-language)?|anthropic-(beta|version)|cache-control|content-(language|type)|date"
    r"|openai-beta|origin|pragma|priority|user-agent",
    re.IGNORECASE,
)
"""Headers that are shown; the value of any other may be a secret."""
_HARMLESS_PAIR = re.compile(
    r"((api[-_]?)?version|alt|beta|model|region|stream|timeout)=[\w.-]{1,40}", re.IGNORECASE | re.ASCII
)
"""Parts of a query that are shown; any other may be a secret, with its name where it has no value."""
_SECRET_FIELD = re.compile(
    r"(key|secret|token|password|passwd|pwd|passphrase|credentials?|authorization|cookie|jwt|bearer|signature)$"
    r"|^auth$",
    re.IGNORECASE,
)
"""Names of request fields whose texts are secrets; `max_tokens` and its like are none."""
_ENGINE_KEY = re.compile(r"(?<=[:,])(\s*api[-_]key\s*=\s*)([^,]+)")
"""The key that the built-in engine wants, as group 2."""
_WORD = re.compile(r"[^\s;,=]+")


def masked(config: Config) -> dict[str, Any]:
    """The tree as plain values, every secret replaced by `***`. A key that a file holds is that file's name only."""
    tree: dict[str, Any] = msgspec.to_builtins(config)
    here, endpoint = config.endpoint, tree["endpoint"]
    shown = [masked_url(url) for url in here.urls]
    endpoint["url"] = shown[0] if isinstance(here.url, str) else shown
    endpoint["path"] = masked_query(here.path) if here.path else here.path
    endpoint["proxy"] = masked_url(here.proxy) if here.proxy else None
    endpoint["api_key"] = MASK if here.api_key and not here.api_key_file else None
    endpoint["headers"] = [_masked_header(header) for header in here.headers]
    endpoint["extra_inputs"] = masked_fields(here.extra_inputs)
    if here.session_end_header:
        endpoint["session_end_header"] = _masked_header(here.session_end_header)
    for name in PATHS:
        tree["server"][name] = masked_query(tree["server"][name])
    tree["server"]["metrics_urls"] = [masked_url(page) for page in config.server.metrics_urls]
    return tree


def dump_toml(config: Config) -> str:
    """The tree as a config file, secrets masked. TOML has no null: keys that are not set are left out."""
    import tomli_w  # only a run that writes its folder needs it

    tree = masked(config)
    extra = tree["endpoint"]["extra_inputs"]
    if _holds_null(extra):
        tree["endpoint"]["extra_inputs"] = msgspec.json.encode(extra).decode()
    if _holds_null(tree["load"]["phases"]):
        tree["load"]["phases"] = msgspec.json.encode(tree["load"]["phases"]).decode()
    set_keys = {
        section: {name: value for name, value in leaves.items() if value is not None}
        for section, leaves in tree.items()
    }
    return tomli_w.dumps(set_keys)


def masked_command(arguments: Sequence[str], config: Config) -> str:
    """The command line to copy: quoted for a shell, every secret of `config` replaced by `***`."""
    shown = {text: kept for text, kept in _texts(config, masked(config)) if text and text != kept}
    hidden = secrets(config.endpoint, config.server)
    return shlex.join(_hide_short(hide(_replaced(argument, shown), hidden), hidden) for argument in arguments)


def _texts(config: Config, tree: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """Every text of the configuration that may hold a secret, and what is shown of it."""
    here, endpoint = config.endpoint, tree["endpoint"]
    yield from zip(here.headers, endpoint["headers"], strict=True)
    yield from ((url, masked_url(url)) for url in (*here.urls, *config.server.metrics_urls))
    yield from ((getattr(here, name), endpoint[name]) for name in ("session_end_header", "path", "proxy"))
    yield from ((getattr(config.server, name), tree["server"][name]) for name in PATHS)


def _replaced(argument: str, shown: Mapping[str, str]) -> str:
    for text, kept in shown.items():
        for before, after in ((text, kept), (_in_json(text), _in_json(kept))):
            argument = argument.replace(before, after)
    return argument


def _in_json(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def secrets(endpoint: EndpointConfig, server: ServerConfig | None = None) -> list[str]:
    """Every secret of a request, of those to the `server` itself too, in every spelling; what holds another comes
    before it.
    """
    paths = [*(getattr(server, name) for name in PATHS), *server.metrics_urls] if server else []
    whole = [*_secrets(endpoint), *(part for path in paths for part in _of_query(path))]
    found = {spelt for secret in whole if secret for spelt in spellings(secret)}
    return sorted(found, key=lambda secret: (-len(secret), secret))


def hide(text: str, hidden: Sequence[str]) -> str:
    """`text` with every one of the `hidden` replaced by `***`, but for those shorter than `LEAST`."""
    for secret in hidden:
        if len(secret) >= LEAST:
            text = text.replace(secret, MASK)
    return text


def _hide_short(text: str, hidden: Sequence[str]) -> str:
    """The same for the short ones, where they stand alone."""
    for secret in hidden:
        if len(secret) < LEAST and secret in text:
            text = re.sub(rf"(?<![\w-]){re.escape(secret)}(?![\w-])", MASK, text)
    return text


def hide_all(value: Any, hidden: Sequence[str]) -> Any:
    """A document, such as a server's description of itself, without the `hidden` and what is a secret by its name."""
    if isinstance(value, dict):
        return {
            hide(str(name), hidden): hide_all(item, hidden) for name, item in masked_fields(value).items()
        }
    if isinstance(value, list):
        return [hide_all(item, hidden) for item in value]
    return hide(value, hidden) if isinstance(value, str) else value


def masked_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Request fields, at every level, without the texts of those that are named like a secret."""
    return {name: _masked_field(value, bool(_SECRET_FIELD.search(name))) for name, value in fields.items()}


def _masked_field(value: Any, secret: bool) -> Any:
    if isinstance(value, dict):
        return {
            name: _masked_field(item, secret or bool(_SECRET_FIELD.search(name)))
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_masked_field(item, secret) for item in value]
    return MASK if secret and isinstance(value, str) else value


def named_like_secret(text: str) -> bool:
    """Whether some word of a text that was not understood names a secret, whose value may stand beside it."""
    return any(_SECRET_FIELD.search(word) for word in re.findall(r"[\w-]+", text))


def masked_url(url: str) -> str:
    """An address without user, password and what its query holds; of the engine's, without its key."""
    if url.startswith(ENGINE):
        return _ENGINE_KEY.sub(rf"\1{MASK}", url)
    return masked_query(USERINFO.sub(rf"\1{MASK}@", url))


def masked_query(address: str) -> str:
    """An address or a path whose query keeps the names of its parameters, and the values of a few harmless ones."""
    path, mark, query = address.partition("?")
    return path + mark + "&".join(map(_masked_pair, query.split("&")))


def _masked_pair(pair: str) -> str:
    if not pair or _HARMLESS_PAIR.fullmatch(pair):
        return pair
    name, _, value = pair.partition("=")
    return f"{name}={MASK}" if value.strip("=") else MASK


def _secrets(endpoint: EndpointConfig) -> Iterator[str]:
    """Every secret as it is sent, and the parts of it that are one by themselves."""
    yield endpoint.api_key or ""
    for header in (*endpoint.headers, endpoint.session_end_header or ""):
        name, _, value = (part.strip() for part in header.partition(":"))
        yield from _of_header(name, value)
    for url in endpoint.urls:
        if url.startswith(ENGINE):
            yield from (key.strip() for _, key in _ENGINE_KEY.findall(url))
        else:
            yield from _of_query(url)
    yield from _of_query(endpoint.path or "")
    yield from secret_fields(endpoint.extra_inputs)
    if endpoint.proxy:
        yield from _of_proxy(endpoint.proxy)


def _of_query(address: str) -> Iterator[str]:
    """The parts of a query that may be secrets, and their values where the name or the value itself says so."""
    for pair in address.partition("?")[2].split("&"):
        if not pair or _HARMLESS_PAIR.fullmatch(pair):
            continue
        name, equals, value = pair.partition("=")
        if equals or _telling(pair):
            yield from (pair, unquote(pair))
        if _SECRET_NAME.search(unquote(name)) or _telling(unquote(value)):
            yield from (value, unquote(value))


def _of_header(name: str, value: str) -> Iterator[str]:
    """The value of a header that is named like a secret, and the words of it (`Bearer KEY`, `session=ID`); of one
    whose name says nothing, what looks like a secret.
    """
    if _SECRET_NAME.search(name):
        yield value
    elif _HARMLESS.fullmatch(name):
        return
    elif _telling(value):
        yield value
    yield from filter(_telling, _WORD.findall(value))


def _telling(text: str) -> bool:
    """Whether a text means nothing but itself: it may be overwritten wherever it stands."""
    return len(text) >= 2 * LEAST or (
        len(text) >= LEAST and any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    )


def secret_fields(value: Any, secret: bool = False) -> Iterator[str]:
    """The texts of request fields, at every level, that are named like a secret."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from secret_fields(item, secret or bool(_SECRET_FIELD.search(name)))
    elif isinstance(value, list):
        for item in value:
            yield from secret_fields(item, secret)
    elif secret and isinstance(value, str):
        yield value


def _of_proxy(address: str) -> Iterator[str]:
    """Password, user (which some proxies take as the key) and what both become in the header."""
    try:
        found = proxy.parse(address)
    except UsageError:
        return
    if found.authorization:
        yield found.authorization.partition(" ")[2]
        user, _, password = found.userinfo.partition(":")
        yield from (unquote(found.userinfo), password, unquote(password))
        if not password or _telling(user):
            yield from (user, unquote(user))


def _masked_header(header: str) -> str:
    name, colon, _ = header.partition(":")
    if not colon:
        return MASK
    return header if _HARMLESS.fullmatch(name.strip()) else f"{name}: {MASK}"


def _holds_null(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return value is None or any(map(_holds_null, inner))
