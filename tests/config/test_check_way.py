"""Several servers: each address means one, and what is said of TLS and proxy has a use for one of them at least."""

from __future__ import annotations

import pytest

from loadstone.config import Config, EndpointConfig, check
from loadstone.errors import UsageError


def refusal(**endpoint):
    with pytest.raises(UsageError) as caught:
        check(Config(endpoint=EndpointConfig(**endpoint)))
    return str(caught.value)


@pytest.mark.parametrize(
    ("urls", "sentence"),
    [
        (("a", "ftp://b"), "endpoint.url = 'ftp://b': scheme 'ftp' is not http or https."),
        (("a", "us:pw@b"), "endpoint.url: leave user and password out"),
        (
            ("http://h:1/v1", "sim:", "h:1"),
            "endpoint.url: http://h:1 is given twice; for a greater share use --url-weights.",
        ),
    ],
)
def test_every_address_means_a_server_of_its_own(urls, sentence):
    assert refusal(url=urls).startswith(sentence)


def test_settings_of_tls_are_for_any_server_that_has_it():
    config = Config(endpoint=EndpointConfig(url=("http://a", "https://b"), insecure=True))
    assert check(config) is config
    told = "endpoint.insecure = true: has no effect without TLS; give --url https://... or leave it out."
    assert refusal(url=("http://a", "http://b"), insecure=True) == told


def test_a_proxy_is_for_any_server_that_is_not_built_in():
    config = Config(endpoint=EndpointConfig(url=("sim:", "http://b"), proxy="http://p:1"))
    assert check(config) is config
    assert refusal(url=("sim:", "sim:"), proxy="http://p:1").startswith(
        "endpoint.proxy: has no effect on the"
    )
