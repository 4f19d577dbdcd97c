"""Files for TLS are tried before anything starts."""

from __future__ import annotations

import os

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from loadstone.config import Config, EndpointConfig, check
from loadstone.errors import UsageError

pytestmark = pytest.mark.timeout(20)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with an authority, our certificate with and without its key, and what is no good."""
    home = tmp_path_factory.mktemp("pem")
    authority = trustme.CA()
    ours, other = authority.issue_cert("us.test"), authority.issue_cert("other.test")
    key = serialization.load_pem_private_key(ours.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    for name, content in {
        "ca.pem": authority.cert_pem.bytes(),
        "both.pem": ours.private_key_and_cert_chain_pem.bytes(),
        "cert.pem": ours.cert_chain_pems[0].bytes(),
        "key.pem": ours.private_key_pem.bytes(),
        "other.pem": other.private_key_pem.bytes(),
        "locked.pem": locked,
        "text.pem": b"hello",
        "torn.pem": ours.cert_chain_pems[0].bytes()[:200],
    }.items():
        (home / name).write_bytes(content)
    os.mkfifo(home / "pipe.pem")
    return home


def checked(files, **names):
    paths = {name: str(files / file) for name, file in names.items()}
    return check(Config(endpoint=EndpointConfig(url="https://h", **paths)))


@pytest.mark.parametrize(
    "names",
    [
        {"ca": "ca.pem"},
        {"client_certificate": "both.pem"},
        {"client_certificate": "cert.pem", "client_key": "key.pem", "ca": "ca.pem"},
    ],
)
def test_files_that_can_be_used(files, names):
    assert checked(files, **names)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"ca": "none.pem"}, "none.pem: cannot be read: No such file or directory."),
        ({"ca": "pipe.pem"}, "pipe.pem: is a pipe or a device; give a file."),
        ({"ca": "text.pem"}, "text.pem: is not PEM: it has no line -----BEGIN ...-----."),
        ({"ca": "torn.pem"}, "torn.pem: holds no certificate that can be read."),
        ({"ca": "key.pem"}, "key.pem: holds no certificate that can be read."),
        ({"client_certificate": "cert.pem"}, "give the key with --client-key if it is apart."),
        ({"client_certificate": "cert.pem", "client_key": "locked.pem"}, "the key in it is encrypted"),
        (
            {"client_certificate": "cert.pem", "client_key": "other.pem"},
            "other.pem: is not the key of endpoint.client_certificate.",
        ),
        (
            {"client_certificate": "torn.pem", "client_key": "key.pem"},
            "hold no certificate and key that can be read.",
        ),
    ],
    ids=lambda case: " ".join(case.values()) if isinstance(case, dict) else "",
)
def test_a_file_of_no_use(files, names, words):
    with pytest.raises(UsageError) as refused:
        checked(files, **names)
    assert str(refused.value).startswith("endpoint.c")
    assert words in str(refused.value)
