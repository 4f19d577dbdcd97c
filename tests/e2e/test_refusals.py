"""What cannot be run is refused before anything starts: one sentence, the right exit code, nothing left behind."""

from __future__ import annotations

import os
import socket

import pytest


def refused(done, code):
    """The one sentence with which a command was refused."""
    assert (done.code, done.out) == (code, ""), done.err
    [line] = done.err.splitlines()
    assert line.startswith("loadstone: error: ")
    return line.removeprefix("loadstone: error: ")


USAGE = [
    ("--concurency 3", "There is no option --concurency. Did you mean --concurrency?"),
    ("--request-rate -1", "load.request_rate = -1: must be a number above 0 or inf."),
    ("--request-count 0", "load.request_count = 0: must be a whole number, at least 1."),
    ("--isl 0", "input.isl_mean = 0: must be a number, at least 1."),
    ("--isl nan", "input.isl_mean = nan"),
    ("--endpoint-type chatt", "endpoint.type = chatt: must be one of chat, completions. Did you mean chat?"),
    ("--tokenizer no-such-tokenizer", "no-such-tokenizer"),
    (
        "--goodput time_to_first_tokn:3",
        "slo.goodput.time_to_first_tokn: there is no such metric. Did you mean",
    ),
    ("--arrival-pattern poisson", "has no effect in a closed loop"),
    ("--benchmark-grace-period 3", "load.grace_s = 3: has no effect without --benchmark-duration"),
    ("--per-chunk-usage", "has no effect without --streaming"),
    ("--insecure", "has no effect without TLS"),
    ("--osl-stddev 3", "has no effect without a mean"),
    ("--prompt-token-ids", "endpoint chat takes no token ids"),
    ("--force", "has no effect without --artifact-dir"),
    ("--ca x.pem", "endpoint.ca = x.pem: has no effect without TLS"),
    ("--server-name x", "has no effect without TLS"),
    ("--client-key x.pem", "has no effect without TLS"),
    ("--idle-timeout-seconds 1800", "is never reached before endpoint.timeout_s = 1800"),
    ("--proxy socks5://p:1", "only proxies that are spoken to in plain HTTP are known"),
    ("--api-key-file none", "endpoint.api_key_file: none: cannot be read: No such file or directory."),
    ("--api-key-file file --api-key x", "the key is given by endpoint.api_key too; give it once."),
    ("--set load.nothing=1", "--set load.nothing: there is no such key."),
    ("--extra-inputs model:x", "endpoint.extra_inputs.model: is not an extra field; use --model."),
    ("--header nonsense", "endpoint.headers"),
    ("--artifact-dir taken", "it is not empty and holds no run; choose another."),
    ("--artifact-dir file", "output.folder = 'file'"),
    ("--artifact-dir file/below", "output.folder = 'file/below': file is not a directory."),
]


@pytest.fixture
def home(tmp_path):
    """A folder with a file, another folder that is in use, and two files of settings, one wrong."""
    (tmp_path / "file").write_text("a file")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/thesis.txt").write_text("five years")
    (tmp_path / "wrong.toml").write_text("[load]\nconcurency = 3\n")
    return tmp_path


def contents(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize(("words", "sentence"), USAGE, ids=[words for words, _ in USAGE])
def test_wrong_input_starts_nothing(loadstone, scripted, home, words, sentence):
    server = scripted()
    before = contents(home)
    done = loadstone("profile", "--url", server.url, "--model", "m", *words.split(), cwd=home)
    assert sentence in refused(done, 2)
    assert server.connections == 0
    assert contents(home) == before


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[load]\nconcurency = 3\n", "load.concurency: there is no such key. Did you mean load.concurrency?"),
        ("[load]\nrequest_rate = -2.0\n", "load.request_rate = -2"),
        ("[load]\nconcurrency = 'two'\n", "load.concurrency = two"),
        ("load = [", "settings.toml"),
    ],
)
def test_a_wrong_file_starts_nothing(loadstone, scripted, tmp_path, text, sentence):
    server = scripted()
    (tmp_path / "settings.toml").write_text(text)
    done = loadstone("profile", "--url", server.url, "-m", "m", "--config", "settings.toml", cwd=tmp_path)
    assert sentence in refused(done, 2)
    assert server.connections == 0
    assert contents(tmp_path) == {"settings.toml"}


@pytest.mark.parametrize("url", ["ftp://h", "http://", "localhost:99999", "sim:step=3", "sim:step_ms=0"])
def test_an_address_that_is_none(loadstone, tmp_path, url):
    refused(loadstone("profile", "--url", url, "--model", "m", cwd=tmp_path), 2)
    assert contents(tmp_path) == set()


def test_an_earlier_run_is_only_replaced_by_force(good, loadstone, engine):
    run = good(f"--url {engine.url} --streaming --isl 16 --osl 2 --request-count 2")
    words = [
        "--url",
        engine.url,
        "--isl",
        "16",
        "--osl",
        "2",
        "--request-count",
        "3",
        "--artifact-dir",
        str(run.path),
    ]
    before = (run.path / "report.json").read_bytes()
    assert "holds a run already; --force replaces it." in refused(loadstone("profile", *words), 2)
    assert (run.path / "report.json").read_bytes() == before
    assert loadstone("profile", *words, "--force").code == 0
    assert len((run.path / "requests.jsonl").read_text().splitlines()) == 3


LOAD = ["--isl", "16", "--artifact-dir", "run", "--request-count", "3"]


def test_nobody_listens(loadstone, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = loadstone("profile", "--url", f"127.0.0.1:{port}", "--model", "m", *LOAD, cwd=tmp_path)
    sentence = f"cannot connect to http://127.0.0.1:{port}: Connection refused. Is the server running there?"
    assert refused(done, 1) == sentence
    assert contents(tmp_path) == set()


def test_a_name_that_is_nowhere(loadstone, tmp_path):
    done = loadstone("profile", "--url", "nowhere.invalid:1", "--model", "m", *LOAD, cwd=tmp_path)
    assert refused(done, 1).startswith("cannot connect to http://nowhere.invalid:1: ")
    assert contents(tmp_path) == set()


def says(status, message):
    return lambda call, wire: wire.refuse(status, message)


@pytest.mark.parametrize(
    ("status", "message", "advice"),
    [
        ("400 Bad Request", "Unrecognized request argument supplied: top_q", ""),
        ("401 Unauthorized", "Incorrect API key provided", "Give a valid key with --api-key."),
        ("404 Not Found", "The model `m` does not exist.", "Check --url, --endpoint-type and --model."),
        ("503 Service Unavailable", "Loading model", ""),
    ],
)
def test_a_refusal_is_told_in_the_servers_words_after_one_attempt(
    loadstone, scripted, tmp_path, status, message, advice
):
    server = scripted(preflight=says(status, message))
    done = loadstone("profile", "--url", server.url, "--model", "m", *LOAD, cwd=tmp_path)
    sentence = refused(done, 1)
    assert f"HTTP {status[:3]}: {message}" in sentence
    assert sentence.endswith(advice)
    assert [call.row for call in server.posts] == [None]
    assert server.posts[0].body["max_completion_tokens"] == 1
    assert contents(tmp_path) == set()


def test_a_field_that_the_server_does_not_take_is_left_out_of_the_run(good, scripted):
    def strict(call, wire):
        for field in ("ignore_eos", "stream_options", "max_completion_tokens"):
            if field in call.body:
                wire.refuse("400 Bad Request", f"Extra inputs are not permitted: {field}")
                return
        wire.answer(call)

    server = scripted(strict, strict)
    run = good(
        f"--url {server.url} --model m --streaming --isl 16 --osl 3 --request-count 3 --extra-inputs ignore_eos:true"
    )
    assert run.counts == {"ok": 3}
    assert {frozenset(call.body) for call in server.posts if call.row is not None} == {
        frozenset({"model", "messages", "stream", "max_tokens"})
    }
    said = [notice.partition(" (")[0] for notice in run.log.notices if "does not take" in notice]
    assert said == [
        "The server does not take ignore_eos",
        "The server does not take stream_options",
        "The server does not take max_completion_tokens",
    ]
    assert "The server does not take ignore_eos" in run.out


def test_a_redirect_is_followed_by_the_preflight_as_by_the_run(good, scripted):
    def moved(call, wire):
        if call.path == "/v1/chat/completions":
            wire.send(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /moved\r\nContent-Length: 0\r\n\r\n")
        else:
            wire.answer(call)

    server = scripted(moved, moved)
    run = good(f"--url {server.url} --model m --streaming --isl 16 --osl 4 --request-count 3")
    assert run.counts == {"ok": 3}
    assert [call.path for call in server.posts].count("/moved") == 4
    assert any("redirects /v1/chat/completions to /moved" in notice for notice in run.log.notices)


HOSTILE_FILES = {
    "fifo.toml": "is a pipe or a device; give a file.",
    "folder.toml": "is a folder; give a file.",
    "zero.toml": "is a pipe or a device; give a file.",
    "large.yaml": "is larger than 256 KiB; is it the right file?",
    "bomb.yaml": "holds an alias; write the value out",
    "deep.toml": "is nested too deeply; no key needs that.",
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
@pytest.mark.timeout(30)
def test_a_file_of_settings_that_is_none(loadstone, tmp_path, name):
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(100_000_000)
    (tmp_path / "bomb.yaml").write_text("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n")
    (tmp_path / "deep.toml").write_text("a." * 100_000 + "a = 1")
    done = loadstone("profile", "--url", "sim:", "-f", name, cwd=tmp_path)
    assert HOSTILE_FILES[name] in refused(done, 2)


def test_a_server_that_rejects_a_field_says_which(loadstone, scripted, tmp_path):
    def strict(call, wire):
        if "top_q" in call.body:
            wire.refuse("400 Bad Request", "Extra inputs are not permitted: top_q")
        else:
            wire.answer(call)

    server = scripted(preflight=strict)
    words = ["--url", server.url, "--model", "m", "--extra-inputs", "top_q:1", *LOAD]
    assert "Extra inputs are not permitted: top_q" in refused(loadstone("profile", *words, cwd=tmp_path), 1)
    assert contents(tmp_path) == set()


def test_the_engine_refuses_a_wrong_path_model_and_key(loadstone, simulate, tmp_path):
    server = simulate("--api-key right")
    base = ["profile", "--url", server.url, *LOAD]
    for words, said in [
        (["--model", "sim", "--api-key", "right", "--endpoint", "/v1/chats"], "there is no /v1/chats"),
        (["--model", "gpt", "--api-key", "right"], "The model `gpt` does not exist."),
        (["--model", "sim", "--api-key", "wrong"], "the API key is missing or wrong"),
        (["--model", "sim"], "the API key is missing or wrong"),
    ]:
        assert said in refused(loadstone(*base, *words, cwd=tmp_path), 1)
    assert contents(tmp_path) == set()


def test_a_server_that_hangs_up_is_asked_once(loadstone, scripted, tmp_path):
    server = scripted(preflight=lambda call, wire: wire.close())
    done = loadstone("profile", "--url", server.url, "--model", "m", *LOAD, cwd=tmp_path)
    assert refused(done, 1) == f"http://{server.url} closed the connection without an answer."
    assert len(server.posts) == 1
    assert contents(tmp_path) == set()


def test_a_server_that_is_no_http(loadstone, scripted, tmp_path):
    server = scripted(preflight=lambda call, wire: wire.send(b"220 smtp ready\r\n") or wire.close())
    done = loadstone("profile", "--url", server.url, "--model", "m", *LOAD, cwd=tmp_path)
    assert "the preflight request to /v1/chat/completions" in refused(done, 1)
    assert contents(tmp_path) == set()


def test_a_model_that_the_server_does_not_name(loadstone, scripted, tmp_path):
    server = scripted()
    sentence = refused(loadstone("profile", "--url", server.url, *LOAD, cwd=tmp_path), 1)
    assert "does not list its models at /v1/models (HTTP 404" in sentence
    assert sentence.endswith("). Name the model with --model.")
    assert server.posts == []
    assert contents(tmp_path) == set()


def test_a_run_that_cannot_start_takes_nothing_of_the_users_with_it(loadstone, engine, tmp_path):
    words = f"--url {engine.url} --request-count 2 --isl 8 --osl 2 --artifact-dir run --force".split()
    assert loadstone("profile", *words, cwd=tmp_path).code == 0
    (tmp_path / "run/notes.md").write_text("five years")
    before, table = contents(tmp_path), (tmp_path / "run/requests.parquet").read_bytes()
    assert {"run/notes.md", "run/report.json"} < before
    assert loadstone("profile", *words, "--model", "other", cwd=tmp_path).code == 1
    virtual = ["--url", "sim:max_model_len=5", "--virtual", "--artifact-dir", "run", "--force"]
    assert "the engine does not take" in refused(loadstone("profile", *virtual, cwd=tmp_path), 1)
    assert contents(tmp_path) == before
    assert (tmp_path / "run/requests.parquet").read_bytes() == table
    assert loadstone("profile", *words, cwd=tmp_path).code == 0
    assert contents(tmp_path) == before


def test_an_earlier_run_stays_when_the_server_is_not_there(loadstone, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text("an earlier one")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    words = f"--url 127.0.0.1:{port} --model m --artifact-dir run --force".split()
    refused(loadstone("profile", *words, cwd=tmp_path), 1)
    assert contents(tmp_path) == {"run", "run/run.json"}
