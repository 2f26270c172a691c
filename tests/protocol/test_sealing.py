"""Sealed text comes back whole, for what it was sealed for, and for nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol.cursors import Sealer, TooLarge, derived_key, key_mark

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)


def sealer(*secrets: str, purpose: str = "test", size: int = 4096) -> Sealer:
    return Sealer(secrets or ("a secret",), purpose, size=size)


@given(st.dictionaries(st.text(max_size=9), JSON, max_size=4), st.binary(max_size=40))
def test_an_object_comes_back_whole(value: dict[str, object], bound: bytes) -> None:
    text = sealer().seal(value, bound)
    assert sealer().open(text, bound) == value
    assert sealer().open(text, bound + b"!") is None


def test_other_secrets_and_purposes_open_nothing() -> None:
    text = sealer("old").seal({"a": 1}, b"")
    assert sealer("new", "old").open(text, b"") == {"a": 1}
    assert sealer("new").open(text, b"") is None
    assert sealer("old", purpose="another").open(text, b"") is None


@pytest.mark.parametrize("text", [None, 7, "", "A", "=", "é", "A" * 5000, ["x"]])
def test_what_was_never_sealed(text: object) -> None:
    assert sealer().open(text, b"") is None


def test_what_is_too_large_is_not_sealed() -> None:
    with pytest.raises(TooLarge, match="at most 60 are allowed") as caught:
        sealer(size=60).seal({"k": "x" * 60}, b"")
    assert caught.value.size > 60


def test_derived_keys() -> None:
    keys = {
        derived_key(secret, purpose)
        for secret in ("a", "b")
        for purpose in ("cursors", "request-state")
    }
    assert len(keys) == 4
    assert {len(key) for key in keys} == {32}


def test_the_mark_of_a_key() -> None:
    mark = key_mark("a secret of the site")
    assert mark == key_mark("a secret of the site")
    assert re.fullmatch("[0-9a-f]{8}", mark)
    assert mark != key_mark("another secret")
    assert mark not in derived_key("a secret of the site", "mark").hex()
