from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator

import pytest

from loadstone.sim.stamps import Stamps


@pytest.fixture
def stamps() -> Stamps:
    return Stamps()


@pytest.fixture
def ends(stamps: Stamps) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's end of a connection and the server's, which was accepted by a listener that asked for stamps."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stamps.ask(listener)
        with socket.create_connection(listener.getsockname()) as client:
            server, _ = listener.accept()
            with server:
                yield client, server


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's stamps are Linux's")
def test_the_kernel_dates_what_waits_to_be_read(
    stamps: Stamps, ends: tuple[socket.socket, socket.socket]
) -> None:
    """Not from the first packet on: the kernel switches its stamps on a moment after it is first asked."""
    client, server = ends
    for _ in range(100):
        before_ns = time.monotonic_ns()
        client.sendall(b"x")
        time.sleep(0.02)
        found = stamps.receive(server)
        assert found.data == b"x"
        assert before_ns - 1_000_000 < found.received_ns <= found.read_ns
        if found.received_ns < found.read_ns - 10_000_000:
            return
    pytest.fail("no packet of 100 was dated before it was read")


def test_without_stamps_the_time_of_reading_counts(
    monkeypatch: pytest.MonkeyPatch, ends: tuple[socket.socket, socket.socket]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    client, server = ends
    client.sendall(b"x")
    found = Stamps().receive(server)
    assert (found.data, found.received_ns) == (b"x", found.read_ns)


def test_a_closed_connection_brings_nothing(
    stamps: Stamps, ends: tuple[socket.socket, socket.socket]
) -> None:
    client, server = ends
    client.close()
    assert stamps.receive(server).data == b""
