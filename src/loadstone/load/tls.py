"""TLS without I/O: ciphertext in, plaintext out, over memory buffers. The sockets stay the worker's."""

from __future__ import annotations

import ssl


class Tls:
    """The client's side of one TLS connection."""

    def __init__(self, context: ssl.SSLContext, server_name: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name)
        self.ended = False
        """The peer has said (close_notify) that nothing follows."""

    def handshake(self, received: bytes = b"") -> bool:
        """Goes on with the handshake; True when it is done. Raises `ssl.SSLError`."""
        if received:
            self._incoming.write(received)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def encrypt(self, plain: bytes) -> bytes:
        """The ciphertext of `plain`, with whatever else has to go out first."""
        self._object.write(plain)
        return self._outgoing.read()

    def decrypt(self, received: bytes) -> bytes:
        """The plaintext that `received` completes; sets `ended` at the peer's goodbye. Raises `ssl.SSLError`."""
        self._incoming.write(received)
        pieces = []
        try:
            while piece := self._object.read(65536):
                pieces.append(piece)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        return b"".join(pieces)

    def pending(self) -> bytes:
        """Bytes the protocol itself wants to send: handshake messages, key updates."""
        return self._outgoing.read()
