"""Parameters are read in one way, or refused."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.protocol.oauth.requests import OAuthError, Pairs, decode, read_parameters

PAIRS = [
    ("", []),
    ("a=b", [("a", "b")]),
    ("a=b&&c=d&", [("a", "b"), ("c", "d")]),
    ("a=&b&c=1", [("c", "1")]),
    ("a=b=c", [("a", "b=c")]),
    ("a;b=c;d", [("a;b", "c;d")]),
    ("a+b=c+d", [("a b", "c d")]),
    ("%61=%C3%A9%2B", [("a", "é+")]),
    ("r=1&r=2", [("r", "1"), ("r", "2")]),
    ("r=1&%72=1", [("r", "1"), ("r", "1")]),
]
NO_PAIRS = [
    ("a=1&a=2", "twice"),
    ("a=1&%61=2", "twice"),
    ("a=&a=1", "twice"),
    ("a&a", "twice"),
    ("a=%", "percent-encoded"),
    ("a=%4", "percent-encoded"),
    ("a=%zz", "percent-encoded"),
    ("a=%u0041", "percent-encoded"),
    ("a=é", "percent-encoded"),
    ("%=b", "percent-encoded"),
    ("a=%FF", "UTF-8"),
    ("a=%C3", "UTF-8"),
    ("a=%C0%AF", "UTF-8"),
    ("a=%ED%A0%80", "UTF-8"),
    ("a=%00", "NUL"),
    ("a%00=1", "NUL"),
    ("a=\0", "NUL"),
    ("a=" + "b" * 99, "more than 100 bytes"),
]


def test_what_is_read() -> None:
    for text, pairs in PAIRS:
        assert read_parameters(text, most=100, several=["r"]) == pairs, text


def test_what_is_refused() -> None:
    for text, reason in NO_PAIRS:
        with pytest.raises(OAuthError, match=reason) as caught:
            read_parameters(text, most=100, several=["r"])
        assert caught.value.error == "invalid_request", text


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=9), st.text(min_size=1, max_size=9)))
def test_what_forms_write_comes_back(values: dict[str, str]) -> None:
    pairs: Pairs = [
        each for each in values.items() if "\0" not in "".join(each) and each[0]
    ]
    assert read_parameters(urlencode(pairs), most=10_000) == pairs


def test_one_value() -> None:
    assert decode("a%20b+c") == "a b c"
    with pytest.raises(ValueError, match="percent-encoded"):
        decode("50%")
