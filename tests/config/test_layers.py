"""File, environment, flags and --set become one configuration."""

from __future__ import annotations

import os

import pytest

from loadstone.config import Config, from_flags, leaves, load
from loadstone.errors import UsageError
from loadstone.sim.options import SimOptions


@pytest.fixture
def write(tmp_path):
    """Writes a config file and gives its path."""

    def make(text, name="bench.toml"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return make


def loaded(file=None, sets=(), environ=None, **flags):
    """Flags as `load__concurrency=["8"]`."""
    paths = {name.replace("__", "."): value for name, value in flags.items()}
    return load(file, paths, sets, environ or {})


def refusal(*args, **flags):
    """The sentence that a configuration is refused with."""
    with pytest.raises(UsageError) as caught:
        loaded(*args, **flags)
    return str(caught.value)


def test_nothing_given_is_the_defaults():
    assert loaded() == Config()


def test_flags_go_over_the_file_and_the_file_over_the_defaults(write):
    file = write("[load]\nconcurrency = 4\nrequest_count = 9\n")
    config = loaded(file, load__concurrency=["8"])
    assert (config.load.concurrency, config.load.request_count, config.load.warmup_request_count) == (8, 9, 0)


def test_a_switch_of_the_file_can_be_turned_off(write):
    file = write("[endpoint]\nstreaming = true\n")
    assert loaded(file).endpoint.streaming is True
    assert loaded(file, endpoint__streaming=False).endpoint.streaming is False


def test_tables_are_merged_by_name_and_lists_replaced(write):
    file = write("[endpoint]\nextra_inputs = {a = 1, b = 2}\nheaders = ['X-A: 1']\n")
    config = loaded(file, endpoint__extra_inputs=["b:3"], endpoint__headers=["X-B: 2"])
    assert config.endpoint.extra_inputs == {"a": 1, "b": 3}
    assert config.endpoint.headers == ("X-B: 2",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "[load]\nrequest_rate = 2\n[slo.goodput]\nrequest_latency = 9\n"),
        ("a.yaml", "load:\n  request_rate: 2\nslo:\n  goodput: {request_latency: 9}\n"),
        ("a.yml", "load: {request_rate: 2}\nslo: {goodput: 'request_latency:9'}\n"),
        ("a.json", '{"load": {"request_rate": 2}, "slo": {"goodput": {"request_latency": 9}}}'),
    ],
)
def test_the_same_in_every_format(write, name, text):
    config = loaded(write(text, name))
    assert config.load.request_rate == 2.0
    assert config.slo.goodput == {"request_latency": 9.0}


def test_a_key_from_a_file_is_the_key(write):
    file = write(" sk-hunter2\n", "key")
    config = loaded(endpoint__api_key_file=[str(file)])
    assert (config.endpoint.api_key, config.endpoint.api_key_file) == ("sk-hunter2", str(file))


def test_a_key_may_come_through_a_pipe():
    ours, theirs = os.pipe()
    os.write(theirs, b"sk-hunter2\n")
    os.close(theirs)
    assert loaded(endpoint__api_key_file=[f"/dev/fd/{ours}"]).endpoint.api_key == "sk-hunter2"
    os.close(ours)


@pytest.mark.parametrize("first", ["endpoint__api_key", "sets"])
def test_a_key_is_given_once(write, first):
    key = str(write("sk-hunter2", "key"))
    given = {"sets": ["endpoint.api_key=x"]} if first == "sets" else {first: ["x"]}
    told = refusal(endpoint__api_key_file=[key], **given)
    assert told == "endpoint.api_key_file: the key is given by endpoint.api_key too; give it once."


def test_one_way_to_give_the_key_goes_over_another_below(write):
    key = str(write("of-the-file", "key"))
    lower = write(f"[endpoint]\napi_key_file = '{key}'\n")
    above = loaded(lower, environ={"LOADSTONE_API_KEY": "of-the-variable"}).endpoint
    assert (above.api_key, above.api_key_file) == ("of-the-variable", None)
    flag = loaded(environ={"LOADSTONE_API_KEY": "of-the-variable"}, endpoint__api_key_file=[key]).endpoint
    assert (flag.api_key, flag.api_key_file) == ("of-the-file", key)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        ("sk-\u00e9".encode(), "holds no key, which is ASCII"),
        (b"sk-hunter2\nsk-hunter3", "the key holds a space, a line break"),
        (b"k" * 300_000, "is larger than 256 KiB"),
    ],
    ids=["empty", "blank", "no ascii", "two lines", "large"],
)
def test_a_file_that_holds_no_key(tmp_path, content, words):
    (tmp_path / "key").write_bytes(content)
    told = refusal(endpoint__api_key_file=[str(tmp_path / "key")])
    assert told.startswith("endpoint.api_key_file")
    assert words in told
    assert "hunter" not in told


def test_a_tilde_is_the_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text("sk-hunter2")
    assert loaded(endpoint__api_key_file=["~/key"]).endpoint.api_key_file == str(tmp_path / "key")
    assert "there is no such user" in refusal(endpoint__api_key_file=["~nobody-of-this-name/key"])


def test_a_value_in_a_file_that_has_another_form_is_not_shown(write):
    told = refusal(write("endpoint:\n  api_key: !!int sk-hunter2\n", "a.yaml"))
    assert told.endswith("not valid YAML: a value is not of its form.")


def test_an_empty_file_is_the_defaults(write):
    assert loaded(write("", "a.yaml")) == loaded(write("")) == Config()


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("load.concurrency=8", "load.concurrency", 8),
        ("load.request_count=1e3", "load.request_count", 1000),
        ("endpoint.model=123", "endpoint.model", "123"),
        ('endpoint.model="a b"', "endpoint.model", "a b"),
        ("endpoint.model=null", "endpoint.model", None),
        ("endpoint.streaming=true", "endpoint.streaming", True),
        ("endpoint.extra_inputs.top_k=5", "endpoint.extra_inputs", {"top_k": 5}),
        ('endpoint.extra_inputs={"a": null}', "endpoint.extra_inputs", {"a": None}),
        ("endpoint.extra_inputs=a:1", "endpoint.extra_inputs", {"a": 1}),
        ('endpoint.headers=["X-A: 1"]', "endpoint.headers", ("X-A: 1",)),
        ("slo.goodput.request_latency=5", "slo.goodput", {"request_latency": 5.0}),
        ("slo.goodput=request_latency:5", "slo.goodput", {"request_latency": 5.0}),
        ("load.request_rate_series=0:1,5:2", "load.request_rate_series", ((0.0, 1.0), (5.0, 2.0))),
        ("load.request_rate_series=[[0,1]]", "load.request_rate_series", ((0.0, 1.0),)),
        ('load.phases=[{"name": "a"}]', "load.phases", ({"name": "a"},)),
    ],
)
def test_set_reaches_every_kind_of_key(text, path, value):
    section, name = path.split(".")
    assert getattr(getattr(loaded(sets=[text]), section), name) == value


def test_several_names_of_one_table_may_be_set():
    sets = ["endpoint.extra_inputs.a=1", "endpoint.extra_inputs.b=2"]
    assert loaded(sets=sets, endpoint__extra_inputs=["c:3"]).endpoint.extra_inputs == {"a": 1, "b": 2, "c": 3}


def test_the_key_comes_from_flag_environment_or_file_in_this_order(write):
    file = write("[endpoint]\napi_key = 'file'\n")
    environ = {"LOADSTONE_API_KEY": "environment"}
    assert loaded(file).endpoint.api_key == "file"
    assert loaded(file, environ=environ).endpoint.api_key == "environment"
    assert loaded(file, environ=environ, endpoint__api_key=["flag"]).endpoint.api_key == "flag"
    assert loaded(environ={"LOADSTONE_API_KEY": ""}).endpoint.api_key is None


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("load.concurency", "--set load.concurency: there is no such key. Did you mean load.concurrency?"),
        ("concurrency", "--set concurrency: there is no such key. Did you mean load.concurrency?"),
        ("load.isl", "--set load.isl: there is no such key. Did you mean input.isl_mean?"),
        ("load", "--set load: is a section; it must hold keys, not one value."),
        ("qqq", "--set qqq: there is no such key. docs/configuration.md lists all keys."),
    ],
)
def test_an_unknown_key_names_the_nearest(key, sentence):
    assert refusal(sets=[f"{key}=8"]) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[load]\nconcurency = 8", "load.concurency: there is no such key. Did you mean load.concurrency?"),
        ("concurrency = 8", "concurrency: there is no such key. Did you mean load.concurrency?"),
        ("load = 8", "load: is a section; it must hold keys, not one value."),
    ],
)
def test_an_unknown_key_of_a_file_names_the_file(write, text, sentence):
    file = write(text)
    assert refusal(file) == f"{file}: {sentence}"


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        (
            "load.request_rate",
            "-3",
            "load.request_rate = -3: must be a number above 0 or inf. For a closed loop set --concurrency; "
            "to send everything at once give inf.",
        ),
        ("load.concurrency", "0", "load.concurrency = 0: must be a whole number, at least 1."),
        ("load.concurrency", "1.5", "load.concurrency = 1.5: must be a whole number, at least 1."),
        ("load.concurrency", "many", "load.concurrency = many: must be a whole number, at least 1."),
        ("load.duration_s", "1e999", "load.duration_s = 1e999: must be a number above 0."),
        ("load.duration_s", "1e10", "load.duration_s = 10000000000.0: must be at most 1,000,000,000."),
        ("load.concurrency", "100001", "load.concurrency = 100001: must be at most 100,000."),
        ("load.workers", "257", "load.workers = 257: must be at most 256."),
        (
            "load.stop_when",
            "request_latency:101",
            "load.stop_when.request_latency = 101.0: must be at most 100.",
        ),
        ("endpoint.url_weights", "1,0", "endpoint.url_weights = 1,0: must be a list of numbers above 0."),
        (
            "load.request_rate_series",
            "0:1,5:-2",
            "load.request_rate_series = 0:1,5:-2: must be a list of SECONDS:RATE points.",
        ),
        ("load.phases", "[3]", "load.phases = 3: must be a list of tables."),
        ("input.isl_mean", "0.5", "input.isl_mean = 0.5: must be a number, at least 1."),
        ("output.keep", "al", "output.keep = al: must be one of all, faults, none. Did you mean all?"),
        ("output.folder", "", 'output.folder = "": must be a text, not empty.'),
    ],
)
def test_a_wrong_value_says_what_it_must_be(path, text, sentence):
    assert refusal(**{path.replace(".", "__"): [text]}) == sentence


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "[load]\nrequest_count = 9\nrequest_rate = inf\n"),
        ("a.toml", "[load]\nrequest_count = 9\nrequest_rate = 'inf'\n"),
        ("a.yaml", "load: {request_count: 9, request_rate: .inf}"),
        ("a.yaml", "load: {request_count: 9, request_rate: inf}"),
    ],
)
def test_everything_at_once_is_a_word_or_a_number(write, name, text):
    assert loaded(write(text, name)).load.request_rate == "inf"
    assert loaded(load__request_rate=["inf"], load__request_count=["9"]).load.request_rate == "inf"


@pytest.mark.parametrize(
    ("name", "text", "urls"),
    [
        ("a.toml", "[endpoint]\nurl = 'a'\n", ("a",)),
        ("a.toml", "[endpoint]\nurl = ['a', 'b:1']\n", ("a", "b:1")),
        ("a.yaml", "endpoint: {url: [a, 'b:1']}", ("a", "b:1")),
    ],
)
def test_a_file_has_one_address_or_several(write, name, text, urls):
    assert loaded(write(text, name)).endpoint.urls == urls


def test_addresses_are_repeated_flags_and_replace_those_of_a_file(write):
    file = write("[endpoint]\nurl = ['a', 'b']\n")
    assert loaded(file, endpoint__url=["c", "d"]).endpoint.urls == ("c", "d")
    assert loaded(file, endpoint__url=["c"]).endpoint.url == "c"
    assert loaded(sets=['endpoint.url=["a", "b"]']).endpoint.urls == ("a", "b")
    assert loaded(sets=["endpoint.url=8000"]).endpoint.urls == ("8000",)


@pytest.mark.parametrize("text", ["url = []", "url = ['']", "url = 5", "url = ['a', 5]"])
def test_an_address_is_a_text(write, text):
    told = refusal(write(f"[endpoint]\n{text}\n"))
    assert told == "endpoint.url: must be a list of texts or a text, not empty."


@pytest.mark.parametrize(
    "text", ["request_rate_series = '0:1, 60:20'", "request_rate_series = [[0, 1], [60, 20.0]]"]
)
def test_points_are_written_as_after_the_flag_or_as_pairs(write, text):
    config = loaded(write(f"[load]\n{text}\n"))
    assert config.load.request_rate_series == ((0.0, 1.0), (60.0, 20.0))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "a.toml",
            "[[load.phases]]\nname = 'a'\nrequest_rate = inf\nrequest_count = 5\n[[load.phases]]\nname = 'b'\n",
        ),
        ("a.yaml", "load:\n  phases:\n  - {name: a, request_rate: .inf, request_count: 5}\n  - name: b\n"),
        (
            "a.yaml",
            """load: {phases: '[{"name":"a","request_rate":"inf","request_count":5},{"name":"b"}]'}""",
        ),
    ],
)
def test_phases_in_every_format(write, name, text):
    phases = ({"name": "a", "request_rate": "inf", "request_count": 5}, {"name": "b"})
    assert loaded(write(text, name)).load.phases == phases


@pytest.mark.parametrize("text", ["request_rate = nan", "request_rate = '5'", "request_rate = -inf"])
def test_a_file_is_held_to_the_same_types(write, text):
    assert "must be a number above 0 or inf" in refusal(write(f"[load]\n{text}\n"))


def test_a_table_of_limits_holds_numbers_only():
    sentence = refusal(sets=['slo.goodput={"request_latency": "fast"}'])
    assert sentence.endswith("must be a table whose values are each a number, at least 0.")


def test_a_number_in_a_phase_that_is_none_names_its_key(write):
    sentence = refusal(write("[[load.phases]]\nname = 'a'\nrequest_rate = nan\nduration_s = 1\n"))
    assert sentence.startswith("load.phases[0].request_rate = nan: must be a number above 0 or inf.")


@pytest.mark.parametrize(
    "flag", ["load.request_rate_series", "endpoint.url_weights", "slo.goodput", "load.stop_when"]
)
def test_a_flag_with_nothing_behind_it_is_not_taken_as_not_given(flag):
    assert refusal(**{flag.replace(".", "__"): [""]}).startswith(f'{flag} = "": must be ')


def test_dates_and_infinities_are_no_request_fields(write):
    for value in ("2026-01-01", "inf"):
        assert "endpoint.extra_inputs" in refusal(write(f"[endpoint]\nextra_inputs = {{d = {value}}}\n"))


def test_an_unknown_endpoint_type_names_the_nearest():
    sentence = refusal(endpoint__type=["chatt"])
    assert sentence.startswith("endpoint.type = chatt: must be one of chat, completions")
    assert sentence.endswith("Did you mean chat?")


def test_a_flag_given_twice_is_refused():
    assert (
        refusal(load__concurrency=["1", "2"])
        == "load.concurrency: --concurrency is given 2 times; give it once."
    )


def test_a_flag_and_its_set_are_refused_together():
    sentence = "load.concurrency is given by its flag and by --set; give it once."
    assert refusal(sets=["load.concurrency=2"], load__concurrency=["1"]) == sentence


@pytest.mark.parametrize("text", ["load.concurrency", "=8", " =8"])
def test_set_must_have_key_and_value(text):
    assert "must be KEY=VALUE" in refusal(sets=[text])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.toml", "[load", "not valid TOML"),
        ("a.yaml", "load: [", "not valid YAML"),
        ("a.yaml", "- load", "must be a table of sections"),
        ("a.ini", "[load]", "name it .toml or .yaml"),
        ("a.toml", "a = " + "9" * 5000, "not valid TOML: Exceeds the limit"),
        ("a.toml", "a = " + "[" * 5000 + "]" * 5000, "is nested too deeply"),
        ("a.yaml", "a: " + "[" * 5000 + "]" * 5000, "is nested too deeply"),
        ("a.yaml", "load: {concurrency: 1}\nload: {request_rate: 2}", "a key is given twice in one table"),
        ("a.yaml", "endpoint:\n  extra_inputs: &a {b: *a}", "holds an alias; write the value out (at line 2"),
        ("a.yaml", "a: !!python/name:os.system", "not valid YAML: could not determine a constructor"),
    ],
)
def test_a_file_that_cannot_be_understood(write, name, text, words):
    file = write(text, name)
    sentence = refusal(file)
    assert sentence.startswith(f"{file}: ")
    assert words in sentence


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    assert refusal(tmp_path / "none.toml").endswith("cannot be read: No such file or directory.")
    assert refusal(tmp_path / "latin.toml").endswith("is not UTF-8 text; save it as such.")


def test_a_secret_is_not_shown_in_a_refusal():
    assert "hunter2" not in refusal(endpoint__api_key=["hunter2 x"])
    assert "hunter2" not in refusal(sets=['endpoint.headers="hunter2"'])


def test_flags_of_the_engine_are_read_the_same_way():
    known = leaves(SimOptions)
    assert from_flags(SimOptions, known, {"step_ms": ["5"], "null": True}) == SimOptions(
        step_ms=5.0, null=True
    )
    with pytest.raises(UsageError) as caught:
        from_flags(SimOptions, known, {"step_ms": ["0"]})
    assert str(caught.value).startswith("step_ms = 0: must be a number above 0")


def test_a_broken_yaml_file_is_not_quoted(write):
    assert "hunter2" not in refusal(write('endpoint: {api_key: "hunter2\n', "a.yaml"))


def test_what_nests_without_end_is_refused():
    deep = "[" * 5000 + "]" * 5000
    assert "is nested deeper than 64 levels" in refusal(endpoint__extra_inputs=[f"a:{deep}"])
    assert "is nested deeper than 64 levels" in refusal(sets=[f"endpoint.extra_inputs.a={deep}"])
    assert "endpoint.extra_inputs" in refusal(endpoint__extra_inputs=["a:" + "[" * 65 + "]" * 65])


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_texts_hold_whole_characters_only(text):
    assert "must be a text" in refusal(output__folder=[text])


@pytest.mark.parametrize("path", ["/é", "/a b", "/a\r\nX: y", "/\x7f"])
def test_a_path_is_what_a_request_line_can_carry(path):
    assert "endpoint.path" in refusal(endpoint__path=[path])
