from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.read.hidden import Hidden, without

KEY = "sk-secret-1"


def test_an_echoed_secret_is_overwritten_wherever_the_reads_cut_it():
    reads = [b"no access with sk-se", b"cret-1, sk-secret-1", b""]
    assert without(reads, [KEY, "no"]) == [b"no access with *****", b"******, ***********", b""]


def test_what_holds_no_secret_is_given_back_as_it_is():
    reads = [b"a", b"b"]
    assert Hidden([KEY]).reads(reads) is reads
    assert Hidden([KEY]).raw(reads[0]) is reads[0]


def test_secrets_within_each_other():
    assert Hidden(["abcdefgh", "defghijk"]).raw(b"-abcdefghijk-") == b"-***********-"


def test_in_words():
    assert Hidden([KEY]).text("wrong key sk-secret-1 é") == "wrong key *********** é"
    assert Hidden([]).text("wrong key sk-secret-1") == "wrong key sk-secret-1"


@pytest.mark.parametrize(("secrets", "any_"), [([], False), (["short"], False), ([KEY], True), (None, True)])
def test_whether_there_is_anything_to_hide(secrets, any_):
    assert bool(Hidden(secrets)) is any_


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Authorization: Bearer abc.def-123", "Authorization: ****** abc.def-123"),
        ("got Bearer abc.def-123 here", "got Bearer *********** here"),
        ('{"api_key": "0123456789"}', '{"api_key": "**********"}'),
        ("X-Api-Key=0123456789", "X-Api-Key=**********"),
        ("Incorrect key: sk-proj-AbC12345.", "Incorrect key: ****************."),
        ("the bearer of this message, key: none", "the bearer of this message, key: none"),
    ],
)
def test_secrets_that_nobody_knows_any_more_go_by_their_looks(said, left):
    assert Hidden(None).text(said) == left


@given(before=st.binary(), after=st.binary(), cut=st.integers(0, 40))
def test_reads_keep_their_lengths_and_no_secret(before, after, cut):
    raw = before + KEY.encode() + after
    reads = [raw[:cut], raw[cut:]]
    cleaned = without(reads, [KEY])
    assert list(map(len, cleaned)) == list(map(len, reads))
    assert KEY.encode() not in b"".join(cleaned)
