"""Servers with a Prometheus page, on real sockets: of prepared answers, and of one small engine that counts what it did."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

PAGE = """\
# HELP vllm:num_requests_running Requests in execution.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# HELP vllm:generation_tokens_total Generated tokens.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 128.0
"""


def http(body, status="200 OK", *headers):
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


class Raw:
    """Answers every connection with the next of its byte strings, the last one for ever; None: says nothing.

    A number among them is so many seconds of silence before what follows.
    """

    def __init__(self, *answers):
        self.requests = []
        self._left = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._released = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            answer = self._left.pop(0) if len(self._left) > 1 else self._left[0]
            threading.Thread(target=self._answer, args=(sock, answer), daemon=True).start()

    def _answer(self, sock, answer):
        with sock:
            request = b""
            while b"\r\n\r\n" not in request and (data := sock.recv(65536)):
                request += data
            self.requests.append(request)
            if answer is None:
                self._released.wait(60)
                return
            try:
                sock.sendall(answer)
            except OSError:
                pass

    def close(self):
        self._released.set()
        self._listener.close()


@pytest.fixture
def raw():
    """Starts servers on the loopback: `raw(http("up 1\\n"), None)`."""
    servers = []

    def start(*answers):
        servers.append(Raw(*answers))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


class Engine:
    """A chat server that streams as many tokens as it is asked for, and counts them under vLLM's names."""

    def __init__(self, *, has_page=True, miscounts=1.0):
        self.prompt_tokens = self.generation_tokens = self.requests = self.pages = 0
        self._lock = threading.Lock()
        engine = self

        class Answering(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                if self.path != "/metrics" or not has_page:
                    return self._send(404, "text/plain", b"not here\n")
                with engine._lock:
                    engine.pages += 1
                    text = engine.page(miscounts)
                return self._send(200, "text/plain; version=0.0.4", text.encode())

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = sum(len(message["content"]) for message in asked["messages"])
                tokens = asked.get("max_completion_tokens") or asked.get("max_tokens") or 4
                with engine._lock:
                    engine.requests += 1
                    engine.prompt_tokens += prompt
                    engine.generation_tokens += tokens
                usage = {
                    "prompt_tokens": prompt,
                    "completion_tokens": tokens,
                    "total_tokens": prompt + tokens,
                }
                chunks = [
                    {"choices": [{"index": 0, "delta": {"content": " a"}, "finish_reason": None}]}
                    for _ in range(tokens)
                ]
                chunks[-1]["choices"][0]["finish_reason"] = "length"
                chunks.append({"choices": [], "usage": usage})
                body = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks)
                return self._send(200, "text/event-stream", body + b"data: [DONE]\n\n")

            def _send(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def page(self, miscounts=1.0):
        counters = {
            "vllm:prompt_tokens_total": self.prompt_tokens,
            "vllm:generation_tokens_total": self.generation_tokens * miscounts,
            "vllm:num_preemptions_total": 0,
            "vllm:prefix_cache_queries_total": self.prompt_tokens,
            "vllm:prefix_cache_hits_total": self.prompt_tokens / 4,
        }
        gauges = {
            "vllm:num_requests_running": 2,
            "vllm:num_requests_waiting": 0,
            "vllm:kv_cache_usage_perc": 0.5,
        }
        lines = []
        for kind, metrics in (("counter", counters), ("gauge", gauges)):
            for name, value in metrics.items():
                lines += [f"# TYPE {name} {kind}", f'{name}{{engine="0",model_name="m"}} {float(value)}']
        return "\n".join(lines) + "\n"

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def engine():
    """Starts engines: `engine(has_page=False)`."""
    engines = []

    def start(**kind):
        engines.append(Engine(**kind))
        return engines[-1]

    yield start
    for one in engines:
        one.close()
