"""Several servers and several models, from the command line: each is asked first, each gets its share."""

from __future__ import annotations

from collections import Counter

import pytest

SHORT = "--streaming --isl 16 --osl 3 --extra-inputs ignore_eos:true"
"""Three tokens are what the scripted servers say."""


@pytest.fixture(scope="module")
def shared(good, scripted_for_all):
    """Two servers, three models, 30 requests; the servers are those that had them."""
    servers = [scripted_for_all(), scripted_for_all()]
    urls = " ".join(f"--url {server.url}" for server in servers)
    return good(f"{urls} --model a,b,c {SHORT} --request-count 30 --concurrency 2"), servers


def of_the_load(server):
    return [call for call in server.posts if call.row is not None]


def test_every_server_and_every_model_is_asked_before_the_load(shared):
    run, servers = shared
    first = [[call.body["model"] for call in server.posts if call.row is None] for server in servers]
    assert first == [["a", "b", "c"], ["a"]]
    assert [(log.target, log.model, log.http_status) for log in run.log.preflights] == [
        (0, "a", 200),
        (1, "a", 200),
        (0, "b", 200),
        (0, "c", 200),
    ]
    assert run.log.preflight == run.log.preflights[0]


def test_servers_and_models_take_their_turns(shared):
    run, servers = shared
    assert [len(of_the_load(server)) for server in servers] == [15, 15]
    asked = Counter(call.body["model"] for server in servers for call in of_the_load(server))
    assert asked == {"a": 10, "b": 10, "c": 10}
    assert run.counts == {"ok": 30}
    run.adds_up()


def test_the_table_says_which_server_had_a_request(shared):
    run, servers = shared
    for number, server in enumerate(servers):
        rows = run.requests.filter(run.requests["target"] == number)["request"].to_list()
        assert sorted(call.row for call in of_the_load(server)) == rows


def test_the_servers_are_named_when_it_begins_and_in_the_log(shared):
    run, servers = shared
    names = ", ".join(f"http://{server.url}" for server in servers)
    assert f"2 servers: {names} · 3 models: a, b, c · 30 requests" in run.err
    assert len(run.log.environment["servers"]) == 2
    assert run.log.environment["server"] == run.log.environment["servers"][0]


def test_an_address_may_be_the_engines(good):
    run = good(f"--url sim:step_ms=1 --url sim:step_ms=2 --model x,y {SHORT} --request-count 8")
    assert run.counts == {"ok-length": 8}
    assert run.log.server_local is True


def test_weights_choose_among_servers(good, scripted):
    servers = [scripted(), scripted()]
    urls = " ".join(f"--url {server.url}" for server in servers)
    run = good(f"{urls} --model m {SHORT} --url-weights 1000000,0.000001 --request-count 20")
    assert [len(of_the_load(server)) for server in servers] == [20, 0]
    assert len([call for call in servers[1].posts if call.row is None]) == 1
    assert run.counts == {"ok": 20}


def test_a_server_that_is_not_there_ends_the_start_with_its_name(profile, scripted):
    here, gone = scripted(), scripted()
    gone.close()
    run = profile(f"--url {here.url} --url {gone.url} --model m {SHORT} --request-count 5")
    assert run.code == 1
    assert f"cannot connect to http://{gone.url}" in run.err
    assert not run.path.exists()
    assert here.posts == []


def test_a_server_without_the_model_ends_the_start_with_both_names(profile, scripted):
    here = scripted()
    other = scripted(preflight=lambda call, wire: wire.refuse("404 Not Found", "no such model"))
    run = profile(f"--url {here.url} --url {other.url} --model m {SHORT} --request-count 5")
    assert run.code == 1
    assert (
        f"http://{other.url}: the preflight request to /v1/chat/completions for model 'm' failed" in run.err
    )


def picky(call, wire):
    """Does not know ignore_eos."""
    if "ignore_eos" in call.body:
        wire.refuse("400 Bad Request", "Unknown field: ignore_eos")
    else:
        wire.answer(call)


def test_what_one_server_does_not_take_none_is_sent(good, scripted):
    easy, strict = scripted(), scripted(picky, picky)
    run = good(f"--url {easy.url} --url {strict.url} --model m {SHORT} --request-count 10")
    assert run.counts == {"ok": 10}
    assert [call for call in of_the_load(easy) if "ignore_eos" in call.body] == []
    assert any(
        notice.startswith(f"The server http://{strict.url} does not take ignore_eos")
        for notice in run.log.notices
    )


def test_the_first_server_names_the_model_and_the_others_have_to_know_it(good, simulate, scripted):
    first, second = simulate("--model own --step-ms 1"), scripted()
    run = good(f"--url {first.url} --url {second.url} {SHORT} --request-count 4")
    assert run.log.config["endpoint"]["model"] == "own"
    assert {call.body["model"] for call in second.posts} == {"own"}


def test_every_server_is_asked_to_forget(good, scripted):
    def willing(call, wire):
        wire.answer(call) if call.path == "/v1/chat/completions" else wire.respond({})

    servers = [scripted(preflight=willing), scripted(preflight=willing)]
    urls = " ".join(f"--url {server.url}" for server in servers)
    run = good(f"{urls} --model m {SHORT} --request-count 4 --reset-kv-cache")
    assert [[call.path for call in server.posts].count("/reset_prefix_cache") for server in servers] == [1, 1]
    assert "The servers' prefix caches were emptied before the load." in run.log.notices
