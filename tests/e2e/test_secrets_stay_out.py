"""Keys and secret headers reach the server and nothing else: no file, no screen, no argument of a process."""

from __future__ import annotations

import psutil
import pytest

KEY, HEADER = "sk-hunter2-key", "hunter2-header"
SECRETS = (KEY, HEADER)
LOAD = "--model m --streaming --isl 16 --osl 4 --keep all --log-level debug"


def leaks(text):
    return [secret for secret in SECRETS if secret in text]


@pytest.fixture
def server(scripted):
    """Fails now and then, so that faults and samples of them are written too."""

    def script(call, wire):
        if call.row % 2:
            wire.refuse("500 Internal Server Error", "no")
        else:
            wire.answer(call)

    return scripted(script)


@pytest.mark.parametrize(
    ("flag", "variables"),
    [(f"--api-key {KEY}", {}), ("", {"LOADSTONE_API_KEY": KEY})],
    ids=["flag", "variable"],
)
def test_no_file_and_no_screen_shows_a_secret(good, loadstone, server, flag, variables):
    run = good(f"--url {server.url} {LOAD} --request-count 6 -H 'X-Secret: {HEADER}' {flag}", **variables)
    assert {call.headers["authorization"] for call in server.posts} == {f"Bearer {KEY}"}
    assert {call.headers["x-secret"] for call in server.posts} == {HEADER}
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) > 10
    assert [path.name for path in files if leaks(path.read_bytes().decode("latin-1"))] == []
    assert leaks(run.out + run.err) == []
    assert run.report.config["endpoint"]["api_key"] == "***"
    assert leaks(loadstone("report", str(run.path)).out) == []


def test_no_process_has_a_secret_among_its_arguments(started, scripted, wait_until):
    server = scripted(lambda call, wire: wire.hold())
    process = started(
        f"profile --url {server.url} {LOAD} --artifact-dir run --request-count 6 -H X-Secret:{HEADER} --workers 2",
        changes={"LOADSTONE_API_KEY": KEY},
    )
    wait_until(lambda: any(call.row is not None for call in server.posts))
    crew = psutil.Process(process.pid).children(recursive=True)
    assert len(crew) == 3
    assert [leaks(" ".join(child.cmdline())) for child in crew] == [[]] * 3
