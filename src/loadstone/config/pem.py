"""The PEM files for TLS, tried once before anything starts: every worker reads them again."""

from __future__ import annotations

from pathlib import Path

from loadstone.config.files import content
from loadstone.config.tree import EndpointConfig
from loadstone.errors import UsageError

MOST_BYTES = 16 << 20


def check_pem(endpoint: EndpointConfig) -> None:
    """Raises `UsageError` for a file that cannot be read or does not hold what it should; shows nothing of it."""
    for name in ("ca", "client_certificate", "client_key"):
        file = getattr(endpoint, name)
        if file is None:
            continue
        try:
            held = content(Path(file), MOST_BYTES)
        except UsageError as error:
            raise UsageError(f"endpoint.{name}: {error}") from None
        if b"-----BEGIN " not in held:
            raise UsageError(f"endpoint.{name}: {file}: is not PEM: it has no line -----BEGIN ...-----.")
        if name != "ca" and b"ENCRYPTED" in held:
            raise UsageError(
                f"endpoint.{name}: {file}: the key in it is encrypted; write it without a password, "
                "such as with openssl pkey -in FILE -out PLAIN."
            )
    if endpoint.ca:
        _try_ca(endpoint.ca)
    if endpoint.client_certificate:
        _try_chain(endpoint.client_certificate, endpoint.client_key)


def _try_ca(file: str) -> None:
    import ssl  # costs 10 ms; few runs name a file for it

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
    except OSError:
        raise UsageError(f"endpoint.ca: {file}: holds no certificate that can be read.") from None


def _try_chain(certificate: str, key: str | None) -> None:
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise UsageError(
                f"endpoint.client_key: {key or certificate}: is not the key of endpoint.client_certificate."
            ) from None
        raise UsageError(
            f"endpoint.client_certificate: {certificate}"
            + (
                f" and {key}: hold no certificate and key that can be read."
                if key
                else ": holds no certificate and key that can be read; give the key with --client-key if it is apart."
            )
        ) from None
