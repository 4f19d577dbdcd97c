import pytest

from loadstone.errors import UsageError
from loadstone.wire import url


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8000",
        "localhost:8000/",
        "localhost:8000/v1",
        "localhost:8000/v1/",
        "http://localhost:8000",
        "http://localhost:8000/v1/chat/completions",
    ],
)
def test_every_spelling_of_an_address_means_the_same_request(text: str) -> None:
    target = url.parse(text)
    assert target == (False, "localhost", 8000, "", "")
    assert target.path("/v1/chat/completions") == "/v1/chat/completions"


def test_a_path_prefix_and_a_query_are_kept() -> None:
    target = url.parse("https://gw.example/models/a/v1/?api-version=3")
    assert target.url == "https://gw.example/models/a"
    assert target.path("/v1/models") == "/models/a/v1/models?api-version=3"


def test_an_empty_endpoint_path_means_the_address_itself() -> None:
    assert url.parse("host/predict").path("") == "/predict"


def test_an_ipv6_address_is_bracketed_in_the_host_header() -> None:
    target = url.parse("[::1]:8000")
    assert (target.host, target.authority) == ("::1", "[::1]:8000")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ftp://host",
        "http://",
        "host:99999",
        "host:abc",
        "host:0",
        "user:pw@host",
        "a b:80",
        "[::1",
        "http://[zz]:80",
        "http://..",
        f"http://{'a' * 64}.example",
        "http://host/é",
    ],
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"endpoint\.url"):
        url.parse(text)


def test_a_refused_address_does_not_show_its_password() -> None:
    with pytest.raises(UsageError) as error:
        url.parse("http://user:secret@host:1")
    assert "secret" not in str(error.value)
