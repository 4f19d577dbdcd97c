"""A secret is found in whatever way it was written down."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadstone.config.spellings import spellings

SECRET = 'sk-a/b+c="d&e<f> \u00e9\\'


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        json.dumps(SECRET)[1:-1].replace("/", "\\/"),
        json.dumps(SECRET)[1:-1].replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"),
        quote(SECRET, safe=""),
        quote(SECRET),
        quote_plus(SECRET),
        quote(SECRET, safe="").lower(),
        html.escape(SECRET),
    ],
)
def test_a_spelling_is_known(written):
    known = spellings(SECRET)
    assert written in known or written.lower() in {spelt.lower() for spelt in known if "%" in spelt}


@given(
    st.binary(max_size=8),
    st.binary(max_size=8),
    st.sampled_from([base64.b64encode, base64.urlsafe_b64encode]),
)
def test_inside_base64_it_is_found_wherever_it_begins(before, after, encode):
    secret = "sk-hunter2-\u00ff?"
    coded = encode(before + secret.encode() + after).decode()
    found = [spelt for spelt in spellings(secret) if spelt in coded]
    assert max(map(len, found)) >= len(secret.encode()) * 8 // 6 - 2


@given(st.text(min_size=1, max_size=20))
def test_any_text_has_spellings_that_are_not_empty(text):
    found = spellings(text)
    assert text in found
    assert "" not in found
