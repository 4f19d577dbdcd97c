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


def test_two_queries_become_one() -> None:
    target = url.parse("https://gw.example/a?api-version=3")
    assert target.path("/v1/chat?deployment=x") == "/a/v1/chat?deployment=x&api-version=3"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("http://host/@cf/meta", "An @ of the path or the query is written %40."),
        ("http://host/#/models", "holds a #, which no server is sent; leave out what follows it."),
    ],
)
def test_what_may_be_a_password_is_asked_for_in_another_way(text: str, advice: str) -> None:
    with pytest.raises(UsageError) as refused:
        url.parse(text)
    assert str(refused.value).endswith(advice)


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


@pytest.mark.parametrize(
    "text",
    [
        "http://user:secret@host:1",
        "ftp://user:secret@host",
        "user:secret@host:x",
        "http://ho\u2100st:secret@host",
        "http://host:x/?key=secret",
        "ftp://host?secret",
        "http://host/é?key=secret",
        "http://host:x#secret",
        "http://[::1?secret",
        "http://user:pa/secret@host:1",
        "http://user:1/secret@host",
        "user:pa?secret@host",
        "http://user:pa#secret@host",
        "http://host/#secret",
    ],
)
def test_a_refused_address_shows_neither_user_nor_query(text: str) -> None:
    with pytest.raises(UsageError) as error:
        url.parse(text)
    assert "secret" not in str(error.value)


def test_a_name_beyond_ascii_goes_over_the_wire_as_its_ascii_form() -> None:
    target = url.parse("https://B\u00fccher.example:8443/v1")
    assert (target.host, target.authority) == ("xn--bcher-kva.example", "xn--bcher-kva.example:8443")


def test_the_zone_of_an_ipv6_address_is_for_the_resolver_alone() -> None:
    target = url.parse("http://[fe80::1%25eth0]:8000")
    assert (target.host, target.authority) == ("fe80::1%eth0", "[fe80::1]:8000")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("http://h/a?key=x#y", "http://h/a?***"),
        ("user:pw@h:1", "***@h:1"),
        ("https://u@h/b", "https://***@h/b"),
        ("http:/user:pw@h", "http:/***@h"),
        ("h:1", "h:1"),
    ],
)
def test_what_of_an_address_a_message_may_show(text: str, kept: str) -> None:
    assert url.shown(text) == kept
