"""One small request before the run, against servers of many kinds."""

from __future__ import annotations

import re
import socket
import ssl
import threading
from contextlib import suppress

import msgspec
import pytest
import trustme

from loadstone.config import EndpointConfig
from loadstone.endpoints import Ask
from loadstone.errors import TargetError
from loadstone.plan.turn import Turn
from loadstone.preflight import Server as Known
from loadstone.preflight import describe, first_model, preflight, reach
from loadstone.wire import url

pytestmark = pytest.mark.timeout(20)
PATH = "/v1/chat/completions"
TURN = Turn(text="a b c", max_tokens=1, isl_tokens=3)
REPLY = {
    "choices": [{"message": {"content": "x"}, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 12},
}
STREAM = (
    b'data: {"choices":[{"delta":{"content":"x"},"finish_reason":"length"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":12}}\n\n'
    b"data: [DONE]\n\n"
)


def message(body, status="200 OK", headers="", media="application/json"):
    body = body if isinstance(body, bytes) else msgspec.json.encode(body)
    head = f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


class Server:
    """Answers each path with given bytes, or what a function makes of the body, and closes; other paths get a 404."""

    def __init__(self, answers, context=None):
        self.requests = []
        self._answers = answers
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(2)
            with sock, suppress(OSError):
                if self._context is None:
                    self._answer(sock)
                else:
                    with self._context.wrap_socket(sock, server_side=True) as peer:
                        self._answer(peer)

    def _answer(self, peer):
        received = b""
        while b"\r\n\r\n" not in received:
            data = peer.recv(65536)
            if not data:
                return
            received += data
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += peer.recv(65536)
        path = head.split(b" ")[1].decode()
        self.requests.append((head.decode(), body))
        answer = self._answers.get(path, message(b"not here", "404 Not Found"))
        peer.sendall(answer(msgspec.json.decode(body)) if callable(answer) else answer)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)


@pytest.fixture
def serve():
    started = []

    def start(answers, **how):
        started.append(Server(answers, **how))
        return started[-1]

    yield start
    for server in started:
        server.close()


@pytest.fixture
def asked(serve):
    """The preflight with a server that answers `answer`; `asked.server` is it."""

    def run(answer, ask=None, others=None, api_key=None, path=PATH, strict=False):
        asked.server = serve({PATH: answer, **(others or {})})
        endpoint = EndpointConfig(timeout_s=0.5, connect_timeout_s=2.0, api_key=api_key)
        known = [Known(reach(url.parse(f"localhost:{asked.server.port}"), endpoint), path)]
        return preflight(known, endpoint, ask or Ask(model="m"), TURN, "preflight-1", strict=strict)

    asked = run
    return run


def small(reached, endpoint, path=PATH):
    """The preflight of one server."""
    return preflight([Known(reached, path)], endpoint, Ask(model="m"), TURN, "p")


def test_what_it_learns(asked):
    found = asked(message(REPLY, headers="Server: vLLM/1\r\nX-Powered-By: cats\r\nDate: now\r\n"))
    assert found.log.request_id == "preflight-1"
    assert (found.log.http_status, found.log.content_tokens, found.log.prompt_tokens) == (200, 3, 12)
    assert 0 < found.log.latency_ms < 20_000
    assert found.described == [{"server": "vLLM/1", "x-powered-by": "cats"}]


def test_what_it_sends(asked):
    asked(message(REPLY), Ask(model="m", extra={"min_tokens": 128, "ignore_eos": True}), api_key="k")
    posts = [(head, body) for head, body in asked.server.requests if head.startswith("POST")]
    ((head, body),) = posts
    assert head.startswith(f"POST {PATH} HTTP/1.1\r\n")
    assert "X-Request-ID: preflight-1\r\n" in head
    assert "Authorization: Bearer k" in head
    sent = msgspec.json.decode(body)
    assert (sent["max_completion_tokens"], sent["min_tokens"], sent["ignore_eos"]) == (1, 1, True)
    assert sent["messages"] == [{"role": "user", "content": "a b c"}]


@pytest.mark.parametrize("extra", ["max_tokens", "max_completion_tokens", "max_new_tokens"])
def test_a_limit_of_the_users_is_cut_to_one_token_too(asked, extra):
    asked(message(REPLY), Ask(model="m", extra={extra: 4_000}))
    assert msgspec.json.decode(asked.server.requests[0][1])[extra] == 1


@pytest.mark.parametrize(
    "answer",
    [
        message(STREAM, media="text/event-stream"),
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + STREAM,
        b"HTTP/1.1 100 Continue\r\n\r\n" + message(STREAM, media="text/event-stream"),
    ],
    ids=["length", "until close", "interim"],
)
def test_a_stream(asked, answer):
    assert asked(answer, Ask(model="m", streaming=True)).log.prompt_tokens == 12


def test_a_document_that_the_close_ends(asked):
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + msgspec.json.encode(REPLY)
    assert asked(answer).log.prompt_tokens == 12


def test_a_server_without_usage(asked):
    assert asked(message({"choices": REPLY["choices"]})).log.prompt_tokens is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            message({"error": {"message": "Incorrect API key"}}, "401 Unauthorized"),
            ["401", "Incorrect API key", "--api-key"],
        ),
        (
            message({"error": {"message": "no model `m`"}}, "404 Not Found"),
            ["404", "no model `m`", "--model"],
        ),
        (
            message(b"<html>Method Not Allowed</html>", "405 No", media="text/html"),
            ["405", "Method Not Allowed", "--url"],
        ),
        (message({"error": {"message": "oom"}}, "500 Oops"), ["500", "oom"]),
        (message(b"hello, I am nginx", media="text/html"), ["text/html"]),
        (message({"error": "overloaded"}), ["overloaded"]),
        (b"SSH-2.0-OpenSSH\r\n", ["HTTP"]),
        (b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", ["101"]),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", []),
        (b"", ["closed the connection without an answer"]),
    ],
    ids=["key", "model", "method", "failure", "page", "in band", "ssh", "upgrade", "torn", "nothing"],
)
def test_a_refusal_is_told_in_the_servers_own_words(asked, answer, words):
    with pytest.raises(TargetError) as error:
        asked(answer)
    told = str(error.value)
    assert told.startswith(f"http://localhost:{asked.server.port}")
    assert [word for word in words if word not in told] == []
    assert "\n" not in told
    assert len([head for head, _ in asked.server.requests if head.startswith("POST")]) == 1


def test_a_key_that_the_server_echoes_is_not_passed_on(asked):
    said = message(b'{"error": {"message": "no access with sk-secret-1"}}', "401 No")
    with pytest.raises(TargetError, match=r"no access with \*{11}") as refused:
        asked(said, api_key="sk-secret-1")
    assert "sk-secret-1" not in str(refused.value)


@pytest.mark.parametrize(
    "said",
    [
        b'{"error": {"message": "no access with \\u0073k-secret-1"}}',
        b'{"error": {"message": "no access with c2stc2VjcmV0LTE="}}',
        b'{"error": {"message": "no access with ' + b"x" * 270 + b' sk-secret-1"}}',
    ],
    ids=["escaped", "base64", "cut short"],
)
def test_a_key_that_is_echoed_otherwise_is_not_passed_on_either(asked, said):
    with pytest.raises(TargetError, match="no access with") as refused:
        asked(message(said, "401 No"), api_key="sk-secret-1")
    assert "sk-s" not in str(refused.value)
    assert "c2stc2" not in str(refused.value)


def test_what_a_query_holds_is_not_told(asked):
    with pytest.raises(TargetError, match="request to /v1/chat/completions for model") as refused:
        asked(message(b"no", "404 No"), path=f"{PATH}?api-key=hunter2")
    assert "hunter2" not in str(refused.value)


def test_an_answer_without_text_that_has_an_end_is_good_enough(asked):
    empty = {
        "choices": [{"message": {"content": ""}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 12},
    }
    found = asked(message(empty))
    assert found.log.prompt_tokens == 12
    assert found.notices == ("The answer to the preflight holds no token that is shown.",)


def test_an_answer_that_brings_nothing_and_no_end_is_a_refusal(asked):
    with pytest.raises(TargetError, match=r"empty|no output"):
        asked(message({"choices": []}))


# ---- fields that a server does not take -------------------------------------------------------------


def refusing(*fields, status="400 Bad Request"):
    """A server that refuses these fields, the first one that it finds."""

    def answer(body):
        for field in fields:
            if field in body or field in (body.get("stream_options") or {}):
                return message({"error": {"message": f"Unknown field: '{field}'"}}, status)
        return message(STREAM, media="text/event-stream") if body["stream"] else message(REPLY)

    return answer


def bodies(server):
    return [msgspec.json.decode(body) for head, body in server.requests if head.startswith("POST")]


def limits(server):
    return [(body.get("max_completion_tokens"), body.get("max_tokens")) for body in bodies(server)]


EVERYTHING = Ask(
    model="m", streaming=True, usage_per_chunk=True, extra={"ignore_eos": True, "min_tokens": 8, "top_k": 1}
)


@pytest.mark.parametrize("status", ["400 Bad Request", "422 Unprocessable"])
@pytest.mark.parametrize("field", ["stream_options", "ignore_eos", "min_tokens"])
def test_a_field_that_the_server_names_is_left_out(asked, field, status):
    found = asked(refusing(field, status=status), EVERYTHING)
    first, second = bodies(asked.server)
    assert {name: value for name, value in first.items() if name != field} == second
    assert found.ask.extra == {**EVERYTHING.extra, field: None}
    (notice,) = found.notices
    assert notice.startswith(f"The server does not take {field} (HTTP {status[:3]}: Unknown field: '{field}'")
    assert "it is left out of every request, so " in notice


def test_running_token_counts_alone_are_left_out(asked):
    found = asked(refusing("continuous_usage_stats"), EVERYTHING)
    assert bodies(asked.server)[1]["stream_options"] == {"include_usage": True}
    assert (found.ask.usage_per_chunk, found.ask.extra) == (False, EVERYTHING.extra)


def test_the_innermost_field_that_is_named_is_left_out(asked):
    def answer(body):
        if "continuous_usage_stats" not in body["stream_options"]:
            return message(STREAM, media="text/event-stream")
        words = "stream_options.continuous_usage_stats: Extra inputs are not permitted"
        return message({"error": {"message": words}}, "422 No")

    found = asked(answer, EVERYTHING)
    assert bodies(asked.server)[-1]["stream_options"] == {"include_usage": True}
    assert found.ask == msgspec.structs.replace(EVERYTHING, usage_per_chunk=False)


def test_the_limit_is_sent_by_its_old_name(asked):
    found = asked(refusing("max_completion_tokens"))
    assert limits(asked.server) == [(1, None), (16, None), (None, 16)]
    assert found.ask == Ask(model="m", legacy_max_tokens=True)
    (notice,) = found.notices
    assert notice.endswith("it is left out of every request, and max_tokens is sent instead.")


def wanting(least, words, field="max_completion_tokens"):
    """A server that takes no lower limit than `least`."""

    def answer(body):
        few = body[field] < least
        return message({"error": {"message": words}}, "400 Bad Request") if few else message(REPLY)

    return answer


TOO_FEW = [
    "Invalid 'max_completion_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
    "Could not finish the message because max_tokens or model output limit was reached.",
]


@pytest.mark.parametrize("words", TOO_FEW, ids=["value", "reached"])
def test_a_server_that_wants_to_say_more_than_one_token_is_let_say_more(asked, words):
    found = asked(wanting(16, words))
    assert limits(asked.server) == [(1, None), (16, None)]
    assert found.ask == Ask(model="m")
    (notice,) = found.notices
    assert notice.startswith("The server does not answer when it may send one token only (HTTP 400: ")
    assert notice.endswith("the preflight asked for 16.")


def test_a_limit_of_the_users_is_raised_too(asked):
    found = asked(wanting(16, TOO_FEW[0], "max_tokens"), Ask(model="m", extra={"max_tokens": 4_000}))
    assert [body["max_tokens"] for body in bodies(asked.server)] == [1, 16]
    assert found.ask.extra == {"max_tokens": 4_000}


def test_a_limit_is_raised_once(asked):
    with pytest.raises(TargetError, match="max_tokens is wrong"):
        asked(message({"error": {"message": "max_tokens is wrong"}}, "400 No"))
    assert limits(asked.server) == [(1, None), (16, None)]


def test_one_field_after_the_other_as_the_server_names_them(asked):
    fields = ("min_tokens", "stream_options", "max_completion_tokens", "ignore_eos")
    found = asked(refusing(*fields), EVERYTHING)
    assert len(bodies(asked.server)) == 6
    assert [notice.split()[5] for notice in found.notices] == list(fields)
    assert bodies(asked.server)[-1].keys() == {"model", "messages", "stream", "max_tokens", "top_k"}


def test_a_server_that_names_fields_whatever_is_sent_is_not_asked_for_ever(asked):
    said = message({"error": {"message": "ignore_eos, min_tokens, stream_options: no"}}, "400 No")
    with pytest.raises(TargetError, match="ignore_eos, min_tokens, stream_options: no"):
        asked(said, EVERYTHING)
    assert len(bodies(asked.server)) == 4


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("ignore_eos is slow", "500 Oops"),
        ("no access to ignore_eos", "403 No"),
        ("top_k is not known", "400 No"),
        ("ignore_eos_too is not known", "400 No"),
    ],
)
def test_nothing_else_is_tried_again(asked, words, status):
    with pytest.raises(TargetError, match=words):
        asked(message({"error": {"message": words}}, status), EVERYTHING)
    assert len(bodies(asked.server)) == 1


def test_a_limit_that_the_user_set_by_its_name_stays(asked):
    with pytest.raises(TargetError, match="Unknown field: 'max_completion_tokens'"):
        asked(refusing("max_completion_tokens"), Ask(model="m", extra={"max_completion_tokens": 5}))


def test_strictly_no_field_is_left_out(asked):
    with pytest.raises(TargetError) as refused:
        asked(refusing("min_tokens"), EVERYTHING, strict=True)
    assert str(refused.value) == (
        f"http://localhost:{asked.server.port}: the server does not take min_tokens (HTTP 400: Unknown field: 'min_tokens'). "
        "Do not ask for it, or do without --strict: then it is left out of every request, "
        "so answers may end before the length asked for."
    )
    assert len(bodies(asked.server)) == 1


def test_strictly_the_limit_is_raised_all_the_same(asked):
    found = asked(wanting(16, TOO_FEW[0]), strict=True)
    assert limits(asked.server) == [(1, None), (16, None)]
    assert len(found.notices) == 1


# ---- several servers and models ---------------------------------------------------------------------


@pytest.fixture
def all_asked(serve):
    """The preflight of several servers, each with its answer; `all_asked.servers` are they."""

    def run(*answers, ask=Ask(model="m"), **endpoint):
        all_asked.servers = [serve({PATH: answer}) for answer in answers]
        config = EndpointConfig(timeout_s=0.5, **endpoint)
        known = [
            Known(reach(url.parse(f"localhost:{server.port}"), config), PATH) for server in all_asked.servers
        ]
        return preflight(known, config, ask, TURN, "preflight-1")

    all_asked = run
    return run


def models_asked(server):
    return [body["model"] for body in bodies(server)]


def test_every_server_and_every_model_is_asked_once(all_asked):
    found = all_asked(message(REPLY), message(REPLY, headers="Server: two\r\n"), model="a, b,c")
    assert [models_asked(server) for server in all_asked.servers] == [["a", "b", "c"], ["a"]]
    assert [(log.target, log.model) for log in found.logs] == [(0, "a"), (1, "a"), (0, "b"), (0, "c")]
    assert [log.request_id for log in found.logs] == [
        "preflight-1",
        "preflight-1.1",
        "preflight-1.2",
        "preflight-1.3",
    ]
    assert found.log is found.logs[0]
    assert found.described == [{}, {"server": "two"}]
    assert (found.ask.model, found.notices) == ("a", ())


def test_what_one_server_refuses_is_left_out_for_all_and_the_others_are_asked_again(all_asked):
    first, second, third = refusing(), refusing("ignore_eos"), refusing()
    found = all_asked(first, second, third, ask=EVERYTHING)
    sent = [["ignore_eos" in body for body in bodies(server)] for server in all_asked.servers]
    assert sent == [[True, False], [True, False], [False]]
    assert found.ask.extra["ignore_eos"] is None
    assert len(found.logs) == 3
    (notice,) = found.notices
    port = all_asked.servers[1].port
    assert notice.startswith(f"The server http://localhost:{port} does not take ignore_eos (HTTP 400: ")


def test_a_server_that_cannot_do_without_what_another_refuses_is_told(all_asked):
    new, old = refusing("max_tokens"), refusing("max_completion_tokens")
    with pytest.raises(TargetError, match="Unknown field: 'max_tokens'") as refused:
        all_asked(new, old)
    assert str(refused.value).startswith(f"http://localhost:{all_asked.servers[0].port}: ")


def test_a_server_that_refuses_a_model_is_told_with_its_name(all_asked):
    def knows_a(body):
        return message(REPLY) if body["model"] == "a" else message({"error": "no such model"}, "404 No")

    with pytest.raises(TargetError, match="for model 'b' failed: HTTP 404: no such model"):
        all_asked(knows_a, message(REPLY), model="a,b")


# ---- redirects --------------------------------------------------------------------------------------


def redirect(to, status="307 Temporary Redirect"):
    return message(b"", status, headers=f"Location: {to}\r\n")


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_within_the_server_is_followed_once(asked, status):
    found = asked(redirect("/new/path?a=b", status), others={"/new/path?a=b": message(REPLY)})
    assert found.log.http_status == 200
    posts = [head.split(" ")[1] for head, _ in asked.server.requests if head.startswith("POST")]
    assert posts == [PATH, "/new/path?a=b"]
    assert found.notices == (
        f"The server redirects {PATH} to /new/path with another query, so every request is sent twice; "
        "give --endpoint /new/path and that query.",
    )


@pytest.mark.parametrize(
    ("to", "told"),
    [
        ("/gw/new?key=hunter2", "to /gw/new, so every request is sent twice; give --endpoint /new."),
        ("/gw/new", "to /gw/new, so every request is sent twice; give --endpoint /new."),
        ("/new?key=hunter2", "to /new, so every request is sent twice; give --url {origin} --endpoint /new."),
        (
            "/gw/v1/chat/completions?key=hunter2&a=b",
            "to /gw/v1/chat/completions with another query, so every request is sent twice; give --endpoint /v1/chat/completions and that query.",
        ),
    ],
)
def test_how_a_redirect_is_saved_when_the_address_has_a_prefix_and_a_query(serve, to, told):
    asked = f"/gw{PATH}?key=hunter2"
    server = serve({asked: redirect(to), to: message(REPLY)})
    target = url.parse(f"localhost:{server.port}/gw?key=hunter2")
    endpoint = EndpointConfig(url=target.url + "?key=hunter2", timeout_s=2.0)
    found = small(reach(target, endpoint), endpoint, target.path(PATH))
    (notice,) = found.notices
    assert notice.startswith(f"The server redirects /gw{PATH} to ")
    assert told.format(origin=target.origin) in notice
    assert "hunter2" not in notice
    assert "?" not in notice


@pytest.mark.parametrize(
    ("to", "status", "shown"),
    [
        ("https://other.test/v1?key=x", "307 T", "https://other.test/v1?***"),
        ("http://localhost:1/v1", "308 P", "http://localhost:1/v1"),
        ("/elsewhere", "302 Found", "/elsewhere"),
        ("/elsewhere", "301 Moved", "/elsewhere"),
    ],
)
def test_a_redirect_elsewhere_is_told(asked, to, status, shown):
    with pytest.raises(TargetError) as refused:
        asked(redirect(to, status), others={"/elsewhere": message(REPLY)})
    told = str(refused.value)
    assert f"HTTP {status[:3]}" in told
    assert told.endswith(f"It leads to {shown}; give that address with --url and --endpoint.")


def test_a_second_redirect_is_not_followed(asked):
    with pytest.raises(TargetError, match="It leads to /b; give that address"):
        asked(redirect("/a"), others={"/a": redirect("/b"), "/b": message(REPLY)})


def test_terminal_codes_in_an_answer_are_not_passed_on(asked):
    with pytest.raises(TargetError) as error:
        asked(message({"error": {"message": "\x1b[2J\x07gone"}}, "500 Oops"))
    assert r"\x1b[2J\x07gone" in str(error.value)


def test_a_server_that_says_nothing(serve):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = EndpointConfig(timeout_s=0.05)
        reached = reach(url.parse(f"127.0.0.1:{listener.getsockname()[1]}"), endpoint)
        with pytest.raises(TargetError, match=r"no answer within 0\.05 s|timed out"):
            small(reached, endpoint)


def test_the_server_describes_itself(asked):
    found = asked(
        message(REPLY),
        others={
            "/version": message({"version": "0.9", "api_key": "theirs"}),
            "/get_server_info": message(b"no json"),
        },
        api_key="k",
    )
    assert found.described == [{"/version": {"version": "0.9", "api_key": "***"}}]
    gets = [head for head, _ in asked.server.requests if head.startswith("GET")]
    assert [head.split(" ")[1] for head in gets] == ["/version", "/get_server_info"]
    assert all("Bearer k" in head for head in gets)


def test_over_tls(serve, tmp_path):
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    server = serve({PATH: message(REPLY)}, context=context)
    endpoint = EndpointConfig(ca=str(tmp_path / "ca.pem"))
    reached = reach(url.parse(f"https://localhost:{server.port}"), endpoint)
    assert small(reached, endpoint).log.http_status == 200


# ---- the model's name ----------------------------------------------------------------------------------


def test_the_first_model_of_the_list(serve):
    endpoint = EndpointConfig()
    server = serve({"/v1/models": message({"data": [{"id": "one"}, {"id": "two"}]})})
    assert first_model(reach(url.parse(f"localhost:{server.port}"), endpoint), endpoint) == "one"


@pytest.mark.parametrize(
    "answer",
    [
        message({"data": []}),
        message([1]),
        message({"data": [{"id": 7}]}),
        message(b"?"),
    ],
)
def test_a_server_that_lists_no_models(serve, answer):
    endpoint = EndpointConfig()
    server = serve({"/v1/models": answer})
    with pytest.raises(
        TargetError, match=r"does not list its models at /v1/models\. Name the model with --model"
    ):
        first_model(reach(url.parse(f"localhost:{server.port}"), endpoint), endpoint)


def named(server, **more):
    endpoint = EndpointConfig(**more)
    return first_model(reach(url.parse(f"localhost:{server.port}"), endpoint), endpoint)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (
            "401 Unauthorized",
            "the request for its models to /v1/models failed: HTTP 401: no access with ***. "
            "Give a valid key with --api-key.",
        ),
        (
            "404 No",
            " does not list its models at /v1/models (HTTP 404: no access with ***). Name the model with --model.",
        ),
        (
            "500 No",
            " does not list its models at /v1/models (HTTP 500: no access with ***). Name the model with --model.",
        ),
    ],
)
def test_a_server_that_refuses_to_list_its_models(serve, status, told):
    server = serve({"/v1/models": message({"error": {"message": "no access with sk-hunter2."}}, status)})
    with pytest.raises(TargetError) as refused:
        named(server, api_key="sk-hunter2")
    assert re.sub(r"\*+", "***", str(refused.value)).endswith(told)


def test_the_list_of_models_is_followed_once_to_another_path(serve):
    listing = message({"data": [{"id": "one"}]})
    moved = redirect("/models", "301 Moved")
    assert named(serve({"/v1/models": moved, "/models": listing})) == "one"
    with pytest.raises(TargetError, match="It leads to /models; give that address"):
        named(serve({"/v1/models": moved, "/models": redirect("/models")}))


def test_a_model_that_is_called_like_a_secret_keeps_its_name(serve):
    server = serve({"/v1/models": message({"data": [{"id": "llama-70b-chat"}]})})
    assert named(server, headers=("X-Model: llama-70b-chat",)) == "llama-70b-chat"


def test_a_model_whose_name_would_be_taken_for_two_is_refused(serve):
    server = serve({"/v1/models": message({"data": [{"id": "one,two"}]})})
    with pytest.raises(TargetError, match="a model whose name holds a comma"):
        named(server)


def test_a_server_that_calls_its_model_by_our_key_is_refused(serve):
    server = serve({"/v1/models": message({"data": [{"id": "sk-abcdef123456"}]})})
    with pytest.raises(TargetError, match="lists a model whose name holds the key it was sent"):
        named(server, api_key="sk-abcdef123456")


def test_the_list_of_models_has_the_time_of_any_answer(monkeypatch):
    monkeypatch.setattr(describe, "ASIDE_TIMEOUT_S", 1e-6)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        endpoint = EndpointConfig(timeout_s=0.05)
        reached = reach(url.parse(f"127.0.0.1:{listener.getsockname()[1]}"), endpoint)
        with pytest.raises(
            TargetError, match=r"no answer within 0\.05 s\. It was asked for its models; --model NAME"
        ):
            first_model(reached, endpoint)


def test_questions_on_the_side_do_not_wait_long():
    assert describe.ASIDE_TIMEOUT_S <= 2
