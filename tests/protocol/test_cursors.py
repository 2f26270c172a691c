from __future__ import annotations

import base64
import hmac
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import cursors
from mcp_app.protocol.cursors import (
    Cursor,
    Sealer,
    TooLarge,
    derived_key,
    key_fingerprint,
)
from mcp_app.protocol.errors import InvalidParams

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
CURSOR = Cursor("default", "tools", 3, "find_orders")
SENTENCE = "The cursor does not come from this list. List again without a cursor."


def opened(text: str, *keys: bytes, server: str = "default", listing: str = "tools"):  # type: ignore[no-untyped-def]
    return cursors.open_cursor(text, keys or (KEY,), server=server, listing=listing)


def refusal(text: str, *keys: bytes, **where: str) -> str:
    with pytest.raises(InvalidParams) as caught:
        opened(text, *keys, **where)
    assert caught.value.code == -32602
    return caught.value.message


names = st.text(max_size=60)
placed = st.builds(Cursor, names, names, st.integers(-(2**40), 2**40), names)


@given(placed, st.binary(min_size=1, max_size=64))
def test_what_was_sealed_is_opened(cursor: Cursor, key: bytes) -> None:
    text = cursors.seal_cursor(cursor, key)
    assert (
        cursors.open_cursor(text, [key], server=cursor.server, listing=cursor.listing)
        == cursor
    )


def test_sealing_is_deterministic_and_safe_in_urls() -> None:
    text = cursors.seal_cursor(CURSOR, KEY)
    assert text == cursors.seal_cursor(CURSOR, KEY)
    assert text.replace("-", "").replace("_", "").isalnum()


def test_a_rotated_key_still_opens() -> None:
    text = cursors.seal_cursor(CURSOR, OTHER_KEY)
    assert opened(text, KEY, OTHER_KEY) == CURSOR
    assert refusal(text, KEY) == SENTENCE


def test_a_cursor_belongs_to_one_list_of_one_server() -> None:
    text = cursors.seal_cursor(CURSOR, KEY)
    assert refusal(text, server="other") == SENTENCE
    assert refusal(text, listing="resources") == SENTENCE


def test_every_flipped_bit_is_seen() -> None:
    text = cursors.seal_cursor(CURSOR, KEY)
    sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for bit in range(len(sealed) * 8):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << (bit % 8)
        altered = base64.urlsafe_b64encode(flipped).decode().rstrip("=")
        assert refusal(altered) == SENTENCE


def test_ten_thousand_altered_cursors_are_refused_alike() -> None:
    random, text = Random(7), cursors.seal_cursor(CURSOR, KEY)  # noqa: S311
    alphabet = "ABCxyz019-_=+/ \n\0é😀"
    for _ in range(10_000):
        place = random.randrange(len(text) + 1)
        altered = (
            text[:place] + random.choice(alphabet) + text[place + random.randrange(2) :]
        )
        if altered != text:
            assert refusal(altered) == SENTENCE


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    assert refusal(text) == SENTENCE


def test_other_spellings_of_the_same_bytes_are_refused() -> None:
    text = cursors.seal_cursor(Cursor("default", "tools", 3, "find_orders"), KEY)
    assert len(text) % 4 != 0
    last = text[:-1] + chr(ord(text[-1]) + 1)
    padding = "=" * (-len(text) % 4)
    assert base64.urlsafe_b64decode(last + padding) == base64.urlsafe_b64decode(
        text + padding
    )
    for spelling in (last, text + padding, text + "\n", f" {text}", text + "-TAMPERED"):
        assert refusal(spelling) == SENTENCE


def test_what_was_signed_for_another_purpose_is_no_cursor() -> None:
    payload = b'["default","tools",3,"find_orders"]'
    signature = hmac.digest(KEY, payload, "sha256")
    text = base64.urlsafe_b64encode(signature + payload).decode().rstrip("=")
    assert refusal(text) == SENTENCE


def test_a_cursor_has_at_most_a_kibibyte() -> None:
    longest = Cursor("default", "resources", 0, "x" * 708)
    text = cursors.seal_cursor(longest, KEY)
    assert len(text) == cursors.LARGEST
    assert opened(text, listing="resources") == longest
    with pytest.raises(ValueError, match="does not fit"):
        cursors.seal_cursor(Cursor("default", "resources", 0, "x" * 709), KEY)
    assert refusal("A" * 1_000_000) == SENTENCE


# -- sealing ---------------------------------------------------------------------------


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
    mark = key_fingerprint("a secret of the site")
    assert mark == key_fingerprint("a secret of the site")
    assert re.fullmatch("[0-9a-f]{8}", mark)
    assert mark != key_fingerprint("another secret")
    assert mark not in derived_key("a secret of the site", "mark").hex()
