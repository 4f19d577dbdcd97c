"""What is written down holds no secret, and can be read again."""

from __future__ import annotations

import shlex
import tomllib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.config import (
    Config,
    EndpointConfig,
    InputConfig,
    LoadConfig,
    OutputConfig,
    ServerConfig,
    SloConfig,
    dump_toml,
    hide,
    hide_all,
    load,
    masked,
    masked_command,
    secrets,
)
from loadstone.config.secrets import secret_fields
from loadstone.errors import UsageError

SECRET = Config(
    endpoint=EndpointConfig(
        url="https://h:1/v1?api-key=URLSECRET&code=CODESECRET&version=2",
        path="/chat?PATHSECRET&access=ACCESSSECRET&alt=sse",
        proxy="http://USERSECRET7:PROXY%40SECRET@p:3128",
        extra_inputs={"api_key": "FIELDSECRET", "min_tokens": 3, "metadata": {"user_token": "DEEPSECRET"}},
        api_key="KEYSECRET",
        headers=("Cookie: COOKIESECRET", "X-Api-Key:HEADERSECRET", "X-Team:TEAMSECRET", "User-Agent: kept"),
        session_end_header="X-Done: ENDSECRET7",
    ),
    server=ServerConfig(
        reset_kv_cache_path="/reset?key=RESETSECRET",
        profiler_start_path="/start?STARTSECRET",
        profiler_stop_path="/stop?code=STOPSECRET",
    ),
)
SEVERAL = Config(
    endpoint=EndpointConfig(
        url=("h:1?code=FIRSTSECRET", "http://h:2", "sim:api_key=ENGINESECRET,model=m", "h:3?key=LASTSECRET")
    )
)


def test_secrets_are_masked_in_the_tree():
    endpoint = masked(SECRET)["endpoint"]
    assert endpoint["api_key"] == "***"
    assert endpoint["headers"] == ["Cookie: ***", "X-Api-Key: ***", "X-Team: ***", "User-Agent: kept"]
    assert endpoint["proxy"] == "http://***@p:3128"
    assert endpoint["extra_inputs"] == {"api_key": "***", "min_tokens": 3, "metadata": {"user_token": "***"}}
    assert endpoint["url"] == "https://h:1/v1?api-key=***&code=***&version=2"
    assert endpoint["path"] == "/chat?***&access=***&alt=sse"
    assert endpoint["session_end_header"] == "X-Done: ***"
    server = masked(SECRET)["server"]
    assert server["reset_kv_cache_path"] == "/reset?key=***"
    assert (server["profiler_start_path"], server["profiler_stop_path"]) == ("/start?***", "/stop?code=***")


def test_every_address_of_several_is_masked():
    shown = ["h:1?code=***", "http://h:2", "sim:api_key=***,model=m", "h:3?key=***"]
    assert masked(SEVERAL)["endpoint"]["url"] == shown
    assert tomllib.loads(dump_toml(SEVERAL))["endpoint"]["url"] == shown
    assert {"code=FIRSTSECRET", "ENGINESECRET", "LASTSECRET"} <= set(secrets(SEVERAL.endpoint))


def test_every_repeated_address_of_a_command_is_masked():
    words = [word for url in SEVERAL.endpoint.urls for word in ("--url", url)]
    assert shlex.split(masked_command(words, SEVERAL)) == [
        "--url", "h:1?code=***", "--url", "http://h:2", "--url", "sim:api_key=***,model=m", "--url", "h:3?key=***",
    ]  # fmt: skip


def test_requests_to_the_server_itself_have_secrets_too():
    assert {"RESETSECRET", "code=STOPSECRET"} <= set(secrets(SECRET.endpoint, SECRET.server))
    assert "RESETSECRET" not in secrets(SECRET.endpoint)
    assert "ENDSECRET7" in secrets(SECRET.endpoint)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("h?version=2024-10-21", "h?version=2024-10-21"),
        ("h?api-version=1&x=1", "h?api-version=1&x=***"),
        ("h?version=1;key=SECRET", "h?version=***"),
        ("h?U0VDUkVU==", "h?***"),
        ("h?", "h?"),
        ("h?a=?b=SECRET", "h?a=***"),
        ("http://user:pa/SECRET@h:1/x", "http://***@h:1/x"),
        ("sim:model=m,api_key=SECRET,step_ms=5", "sim:model=m,api_key=***,step_ms=5"),
        ("sim: api-key = SECRET", "sim: api-key = ***"),
    ],
)
def test_what_is_shown_of_an_address(url, shown):
    assert masked(Config(endpoint=EndpointConfig(url=url)))["endpoint"]["url"] == shown


def test_without_secrets_the_tree_is_shown_as_it_is():
    assert msgspec.convert(masked(Config()), Config) == Config()


def test_no_secret_is_in_the_file():
    text = dump_toml(SECRET)
    assert "SECRET" not in text
    assert tomllib.loads(text)["endpoint"]["api_key"] == "***"


def test_keys_that_are_not_set_are_left_out_of_the_file():
    assert "model" not in tomllib.loads(dump_toml(Config()))["endpoint"]


def test_a_masked_file_is_refused_until_its_secret_is_given_again(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text(dump_toml(Config(endpoint=EndpointConfig(api_key="KEYSECRET"))))
    with pytest.raises(UsageError, match=r"endpoint.api_key: holds \*\*\*"):
        load(file, environ={})
    assert load(file, environ={"LOADSTONE_API_KEY": "again"}).endpoint.api_key == "again"


@pytest.mark.parametrize(
    "words",
    [
        ["--api-key", "KEYSECRET"],
        ["--api-key=KEYSECRET"],
        ["--set", 'endpoint.api_key="KEYSECRET"'],
        ["-H", "Cookie: COOKIESECRET"],
        ["-HCookie:COOKIESECRET"],
        ["--header=X-Api-Key:HEADERSECRET"],
        ["--header=X-Team:TEAMSECRET"],
        ["--set", 'endpoint.headers=["X-Team:TEAMSECRET"]'],
        ["-u", "https://h:1/v1?api-key=URLSECRET&code=CODESECRET&version=2"],
        ["--endpoint", "/chat?PATHSECRET&access=ACCESSSECRET&alt=sse"],
        ["--set", 'endpoint.path="/chat?PATHSECRET&access=ACCESSSECRET&alt=sse"'],
        ["--proxy", "http://USERSECRET7:PROXY%40SECRET@p:3128"],
        ["--set", "endpoint.proxy=http://USERSECRET7:PROXY%40SECRET@p:3128"],
        ["--extra-inputs", "api_key:FIELDSECRET"],
        ["--extra-inputs", '{"metadata": {"user_token": "DEEPSECRET"}}'],
        ["--set", "endpoint.extra_inputs.api_key=FIELDSECRET"],
        ["--session-end-header", "X-Done: ENDSECRET7"],
        ["--reset-kv-cache-path", "/reset?key=RESETSECRET"],
        ["--server-profiler-start-path=/start?STARTSECRET"],
        ["--set", "server.profiler_stop_path=/stop?code=STOPSECRET"],
    ],
)
def test_no_secret_is_in_the_command_to_copy_however_it_was_spelt(words):
    command = masked_command(["loadstone", "profile", *words], SECRET)
    assert "SECRET" not in command
    assert "***" in command


def test_a_secret_that_json_spells_differently_is_masked_too():
    config = Config(endpoint=EndpointConfig(api_key='a"b\\c'))
    word = f"endpoint.api_key={msgspec.json.encode(config.endpoint.api_key).decode()}"
    assert masked_command([word], config) == shlex.quote('endpoint.api_key="***"')


def test_a_short_secret_is_masked_where_it_stands_alone():
    config = Config(endpoint=EndpointConfig(api_key="k", headers=("X-Mode: 1",)))
    words = ["--api-key", "k", "--api-key=k", "-H", "X-Mode: 1", "--keep", "all", "--isl", "1"]
    assert shlex.split(masked_command(words, config)) == [
        "--api-key", "***", "--api-key=***", "-H", "X-Mode: ***", "--keep", "all", "--isl", "1",
    ]  # fmt: skip


def test_a_key_that_a_file_holds_is_written_down_as_that_files_name(tmp_path):
    (tmp_path / "key").write_text("KEYSECRET")
    file = tmp_path / "config.toml"
    config = load(flags={"endpoint.api_key_file": [str(tmp_path / "key")]}, environ={})
    file.write_text(dump_toml(config))
    assert "KEYSECRET" not in file.read_text()
    assert load(file, environ={}) == config
    assert config.endpoint.api_key == "KEYSECRET"


@pytest.mark.parametrize(
    "endpoint",
    [
        EndpointConfig(headers=("X-Team: ***",)),
        EndpointConfig(proxy="http://***@p:1"),
        EndpointConfig(url="http://h?key=***"),
        EndpointConfig(path="/v1?***"),
        EndpointConfig(url=("a", "b?key=***")),
        EndpointConfig(session_end_header="X-Done: ***"),
        EndpointConfig(extra_inputs={"a": {"api_key": "***"}}),
    ],
)
def test_what_was_masked_is_not_sent(tmp_path, endpoint):
    file = tmp_path / "config.toml"
    file.write_text(dump_toml(Config(endpoint=endpoint)))
    with pytest.raises(UsageError, match=r"holds \*\*\*, where loadstone left out a secret"):
        load(file, environ={})


def test_stars_in_a_field_that_is_no_secret_are_sent(tmp_path):
    config = load(flags={"endpoint.extra_inputs": ["stop:***"]}, environ={})
    assert config.endpoint.extra_inputs == {"stop": "***"}


@pytest.mark.parametrize(
    ("endpoint", "sought"),
    [
        (EndpointConfig(headers=("Authorization: Bearer sk-hunter2",)), ["Bearer sk-hunter2", "sk-hunter2"]),
        (EndpointConfig(headers=("Cookie: lang=en; session=abc123def",)), ["abc123def"]),
        (EndpointConfig(headers=("X-Team: hunter2-team",)), ["hunter2-team"]),
        (EndpointConfig(url="http://h?sig=a%2Fb%2Fc%2F1"), ["a%2Fb%2Fc%2F1", "a/b/c/1"]),
        (EndpointConfig(path="/v1/chat?key=hunter"), ["hunter"]),
        (EndpointConfig(url="http://h?code=hunter2&x=word"), ["hunter2", "code=hunter2", "x=word"]),
        (EndpointConfig(url="http://h?hunter2"), ["hunter2"]),
        (EndpointConfig(url="sim:step_ms=5,api_key=hunter,model=m"), ["hunter"]),
        (EndpointConfig(proxy="http://us:pass%2Fword@p:1"), ["pass%2Fword", "pass/word", "dXM6cGFzcy93b3Jk"]),
        (EndpointConfig(proxy="http://onlykey:@p:1"), ["onlykey"]),
        (EndpointConfig(extra_inputs={"access_token": ["one-of-two"]}), ["one-of-two"]),
    ],
)
def test_what_is_sought_in_the_words_of_a_server(endpoint, sought):
    assert set(sought) <= set(secrets(endpoint))


@pytest.mark.parametrize(
    "endpoint",
    [
        EndpointConfig(headers=("X-Format: chunked",)),
        EndpointConfig(headers=("X-Kind: content", "X-Version: 1.25", "Accept: text/event-stream")),
        EndpointConfig(extra_inputs={"stop": "a long text that means itself", "max_tokens": 100}),
        EndpointConfig(url="http://h?api-version=2024-10-21", path="/v1?chunked"),
    ],
)
def test_plain_words_are_not_sought(endpoint):
    assert secrets(endpoint) == []


def test_a_servers_description_of_itself_is_kept_without_its_keys():
    told = {
        "model": "m",
        "api_key": "theirs",
        "args": [{"admin_token": "theirs", "note": "sk-hunter2!"}],
        "n": 3,
    }
    assert hide_all(told, secrets(EndpointConfig(api_key="sk-hunter2"))) == {
        "model": "m",
        "api_key": "***",
        "args": [{"admin_token": "***", "note": "***!"}],
        "n": 3,
    }


def test_words_of_others_lose_only_what_is_long_enough_to_be_a_secret():
    assert hide("wrong key sk-hunter2", ["sk-hunter2", "wrong"]) == "wrong key ***"


def test_the_command_to_copy_means_the_same_words():
    words = ["loadstone", "profile", "--extra-inputs", '{"a": "it\'s"}', "--goodput", "a:1 b:2"]
    assert shlex.split(masked_command(words, Config())) == words


text = st.text(min_size=1, max_size=20).filter(
    lambda text: "***" not in text and "\0" not in text and not list(secret_fields({text: "x"}))
)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
configs = st.builds(
    Config,
    endpoint=st.builds(
        EndpointConfig,
        url=st.sampled_from(["localhost:8000", ("a", "b:1"), ("sim:", "sim:"), ("https://h/v1",)]),
        model=st.none() | text.filter(lambda name: "," not in name and name.strip()) | st.just("A,B"),
        streaming=st.booleans(),
        extra_inputs=st.dictionaries(text.map("x-".__add__), json, max_size=3),
        timeout_s=st.floats(1, 1e9),
    ),
    input=st.builds(InputConfig, isl_mean=st.floats(1, 1e6), seed=st.none() | st.integers(0, 2**63 - 1)),
    load=st.builds(
        LoadConfig,
        request_rate=st.floats(0.01, 1e6),
        concurrency=st.none() | st.integers(1, 10**5),
        arrival_smoothness=st.none() | st.floats(0.01, 100),
    )
    | st.builds(LoadConfig, request_rate=st.just("inf"), request_count=st.integers(1, 99))
    | st.builds(
        LoadConfig,
        request_rate_series=st.lists(st.floats(0, 1e6), min_size=1, unique=True)
        .map(lambda moments: tuple((at_s, at_s + 1) for at_s in sorted(moments)[:5]))
        .filter(lambda points: points[-1][1] <= 1e6),
        stop_when=st.just({"request_latency": 2.0}),
        request_count=st.just(9),
    )
    | st.builds(
        LoadConfig,
        phases=st.lists(
            st.fixed_dictionaries({"concurrency": st.none() | st.integers(1, 9)}), min_size=1, max_size=3
        ).map(lambda tables: tuple({"name": str(at), **table} for at, table in enumerate(tables))),
    ),
    slo=st.builds(SloConfig, goodput=st.dictionaries(text, st.floats(0, 1e9), max_size=3)),
    output=st.builds(
        OutputConfig, inputs_json=st.booleans(), keep=st.sampled_from(["faults", "all", "none"])
    ),
)


@given(configs)
def test_a_written_file_reads_back_as_the_same_configuration(tmp_path_factory, config):
    file = tmp_path_factory.mktemp("config") / "config.toml"
    file.write_text(dump_toml(config), encoding="utf-8")
    assert load(file, environ={}) == config
