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
    SloConfig,
    dump_toml,
    load,
    masked,
    masked_command,
)
from loadstone.errors import UsageError

SECRET = Config(
    endpoint=EndpointConfig(
        url="https://h:1/v1?api-key=URLSECRET&version=2",
        api_key="KEYSECRET",
        headers=("Cookie: COOKIESECRET", "X-Api-Key:HEADERSECRET", "User-Agent: kept"),
    )
)


def test_secrets_are_masked_in_the_tree():
    endpoint = masked(SECRET)["endpoint"]
    assert endpoint["api_key"] == "***"
    assert endpoint["headers"] == ["Cookie: ***", "X-Api-Key: ***", "User-Agent: kept"]
    assert endpoint["url"] == "https://h:1/v1?api-key=***&version=2"


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
        ["-u", "https://h:1/v1?api-key=URLSECRET&version=2"],
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


def test_the_command_to_copy_means_the_same_words():
    words = ["loadstone", "profile", "--extra-inputs", '{"a": "it\'s"}', "--goodput", "a:1 b:2"]
    assert shlex.split(masked_command(words, Config())) == words


text = st.text(min_size=1, max_size=20).filter(lambda text: "***" not in text and "\0" not in text)
json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
configs = st.builds(
    Config,
    endpoint=st.builds(
        EndpointConfig,
        model=st.none() | text,
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
