from __future__ import annotations

import errno
import select
import socket

import pytest

from loadstone import clock
from loadstone.load import sockets


@pytest.mark.parametrize("stamps", [False, True])
def test_a_socket_on_its_way(stamps):
    if stamps and not clock.kernel_stamps_available():
        pytest.skip("no kernel stamps")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        sockets.start_connect(socket.AF_INET, listener.getsockname(), stamps) as near,
    ):
        assert select.select([], [near], [], 5)[1]
        assert near.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
        assert near.gettimeout() == 0.0
        assert near.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        if stamps:
            assert near.getsockopt(socket.SOL_SOCKET, clock.SO_TIMESTAMPNS) == 1


def test_what_fails_at_once_is_told_at_once_and_leaves_no_socket():
    with pytest.raises(OSError) as error:
        sockets.start_connect(socket.AF_INET, ("255.255.255.255", 1), False)
    assert error.value.errno in (errno.ENETUNREACH, errno.EACCES, errno.EPERM)


def test_addresses_come_once_in_the_systems_order(monkeypatch):
    six = (socket.AF_INET6, 1, 6, "", ("::1", 80, 0, 0))
    four = (socket.AF_INET, 1, 6, "", ("127.0.0.1", 80))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [six, four, six])
    assert sockets.resolve("localhost", 80) == [(socket.AF_INET6, six[4]), (socket.AF_INET, four[4])]
