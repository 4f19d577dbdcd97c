"""Keys and secret headers reach the server and nothing else: no file, no screen, no argument of a process.

However they were given, and however the server repeats them.
"""

from __future__ import annotations

import base64
import json
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from loadstone.crew import MOST_REPLACEMENTS

KEY, HEADER, FIELD, QUERY = "sk-hunter2/key=", "hunter2-header", "hunter2-field", "hunter2-query"
PATH = "hunter2-path&code=hunter2-code"
LOAD = "--model m --streaming --isl 16 --osl 4 --keep all --log-level debug --request-count 6"


def leaks(text):
    return [line[:200] for line in text.splitlines() if "hunter2" in line.lower()]


def leaking_files(folder, but=()):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    found = {str(path.relative_to(folder)) for path in files if leaks(path.read_bytes().decode("latin-1"))}
    return found - set(but)


ECHOES = {
    "plain": str,
    "json": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "unicode escapes": lambda text: text.replace("=", "\\u003d"),
    "percent": lambda text: quote(text, safe=""),
    "base64": lambda text: base64.b64encode(f"Bearer {text}!".encode()).decode(),
}


@pytest.fixture
def server(scripted):
    """Fails now and then, so that faults and samples of them are written too."""

    def script(call, wire):
        if call.row % 2:
            wire.refuse("500 Internal Server Error", "no")
        else:
            wire.answer(call)

    return scripted(script)


GIVEN = {
    "flag": (["--api-key", KEY], {}),
    "flag joined": ([f"--api-key={KEY}"], {}),
    "set": (["--set", f"endpoint.api_key={KEY}"], {}),
    "set as JSON": (["--set", f'endpoint.api_key="{KEY}"'], {}),
    "variable": ([], {"LOADSTONE_API_KEY": KEY}),
    "key file": (["--api-key-file", "key"], {}),
    "config file": (["-f", "bench.toml"], {}),
    "header": (["-H", f"Authorization: Bearer {KEY}"], {}),
}


@pytest.mark.parametrize("way", GIVEN)
def test_a_key_is_sent_and_shown_nowhere(loadstone, server, run_of, tmp_path, way):
    words, variables = GIVEN[way]
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "bench.toml").write_text(f'[endpoint]\napi_key = "{KEY}"\n')
    done = loadstone(
        "profile",
        "--url",
        server.url,
        *LOAD.split(),
        "--artifact-dir",
        "run",
        *words,
        cwd=tmp_path,
        **variables,
    )
    run = run_of(tmp_path / "run")
    assert {call.headers["authorization"] for call in server.posts} == {f"Bearer {KEY}"}
    assert run.counts["ok"] == 3
    assert leaking_files(run.path) == set()
    assert leaks(done.out + done.err) == []
    assert leaks(loadstone("report", "run", cwd=tmp_path).out) == []


def test_headers_and_queries_are_sent_and_shown_nowhere(good, loadstone, server):
    run = good(
        f"--url '{server.url}?api-key={QUERY}&version=2' --endpoint '/v1/chat/completions?{PATH}' "
        f"{LOAD} -H 'X-Secret: {HEADER}' -H X-Team:{HEADER}"
    )
    for call in server.posts:
        assert (call.headers["x-secret"], call.headers["x-team"]) == (HEADER, HEADER)
        assert call.path == f"/v1/chat/completions?{PATH}&api-key={QUERY}&version=2"
    assert leaking_files(run.path) == set()
    assert leaks(run.out + run.err) == []
    assert run.report.config["endpoint"]["headers"] == ["X-Secret: ***", "X-Team: ***"]
    assert run.report.config["endpoint"]["url"].endswith("?api-key=***&version=2")
    assert run.report.config["endpoint"]["path"] == "/v1/chat/completions?***&code=***"


@pytest.mark.parametrize(
    "words",
    [f"--extra-inputs api_key:{FIELD}", f"--set endpoint.extra_inputs.metadata.user_token={FIELD}"],
    ids=["flag", "set"],
)
def test_a_field_that_is_named_like_a_key_is_shown_only_in_what_is_sent(good, server, words):
    run = good(f"--url {server.url} {LOAD} --no-inputs-json {words}")
    assert all(FIELD in json.dumps(call.body) for call in server.posts)
    assert leaking_files(run.path, but={"plan/bodies.bin"}) == set()
    assert leaks(run.out + run.err) == []


@pytest.mark.parametrize("spelling", ECHOES)
def test_what_the_server_repeats_of_a_key_is_overwritten(profile, scripted, spelling):
    def script(call, wire):
        said = ECHOES[spelling](call.headers["authorization"].removeprefix("Bearer "))
        body = b'{"error": {"message": "no access with %s here"}}' % said.encode()
        wire.send(
            b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)
            + body
        )

    server = scripted(script)
    run = profile(f"--url {server.url} {LOAD}", LOADSTONE_API_KEY=KEY)
    assert run.report.outcomes.counts == {"http-auth": 6}
    raw = {ECHOES[spelling](KEY), KEY, "aHVudGVyMi"}
    for path in run.path.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("latin-1")
            assert [secret for secret in raw if secret in text] == [], path
    assert leaks(run.out + run.err) == []
    assert "no access with" in (run.path / "faults/index.jsonl").read_text()


def test_what_the_preflight_hears_of_a_key_is_not_passed_on(loadstone, scripted, tmp_path):
    def refuse(call, wire):
        wire.refuse("401 Unauthorized", f"wrong key {KEY}")

    server = scripted(preflight=refuse)
    done = loadstone("profile", "--url", server.url, "-m", "m", cwd=tmp_path, LOADSTONE_API_KEY=KEY)
    assert done.code == 1
    assert "HTTP 401: wrong key ***" in done.err
    assert leaks(done.err) == []


def test_what_dead_decoders_left_behind_is_stored_without_secrets(
    started, scripted, wait_until, tmp_path, run_of
):
    """The header's value looks like none, so that only who knows it can find it."""
    no_decoder_is_left = threading.Event()

    def script(call, wire):
        no_decoder_is_left.wait(20)
        wire.refuse("500 Internal Server Error", f"nothing for {call.headers['x-team']} here")

    server = scripted(script)
    process = started(f"profile --url {server.url} {LOAD} --artifact-dir run -H X-Team:{HEADER}")
    wait_until(lambda: any(call.row is not None for call in server.posts))
    killed = set()

    def all_are_dead():
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if child.pid not in killed and "loadstone.read.follow" in child.cmdline():
                    child.kill()
                    killed.add(child.pid)
        return len(killed) == 1 + MOST_REPLACEMENTS

    wait_until(all_are_dead)
    no_decoder_is_left.set()
    out, err = process.communicate(timeout=60)
    run = run_of(tmp_path / "run")
    assert [death.process for death in run.log.deaths] == ["decoder 0"] * len(killed)
    assert run.counts == {"http-server-error": 6}
    assert leaking_files(run.path) == set()
    assert leaks(out + err) == []


def seen_by_others(process):
    """What `ps` and /proc show of a process."""
    return " ".join(process.cmdline()) + Path(f"/proc/{process.pid}/environ").read_bytes().decode("latin-1")


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("", {"LOADSTONE_API_KEY": KEY}),
        (f"--api-key {KEY}", {}),
        ("--api-key-file key", {}),
        (f"-H X-Secret:{HEADER}", {}),
        (f"--extra-inputs api_key:{FIELD}", {}),
    ],
    ids=["variable", "flag", "file", "header", "field"],
)
def test_no_process_that_is_started_shows_a_secret(started, scripted, wait_until, tmp_path, words, changes):
    (tmp_path / "key").write_text(KEY)
    server = scripted(lambda call, wire: wire.hold())
    process = started(
        f"profile --url {server.url} {LOAD} --artifact-dir run {words} --workers 2", changes=changes
    )
    wait_until(lambda: any(call.row is not None for call in server.posts))
    crew = psutil.Process(process.pid).children(recursive=True)
    assert len(crew) == 4
    assert [leaks(seen_by_others(child)) for child in crew] == [[]] * 4


@pytest.mark.parametrize("given", [["--api-key", "hunter2-key"], []], ids=["with the key", "refused"])
def test_the_key_of_an_engine_on_the_virtual_clock(loadstone, tmp_path, given):
    urls = ["--url", "sim:", "--url", "sim:step_ms=1,api_key=hunter2-key"]
    load = ["--streaming", "--isl", "16", "--osl", "4", "--request-count", "6", "--log-level", "debug"]
    done = loadstone("profile", "--virtual", *urls, *given, *load, "--artifact-dir", "run", cwd=tmp_path)
    assert done.code == (0 if given else 1), done.err
    assert leaks(done.out) == leaks(done.err) == []
    if given:
        assert leaking_files(tmp_path / "run") == set()
        assert "sim:step_ms=1,api_key=***" in (tmp_path / "run" / "loadstone.log").read_text()
    else:
        assert "sim:step_ms=1,api_key=***" in done.err
