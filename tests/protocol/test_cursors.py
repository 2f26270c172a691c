from __future__ import annotations

import base64
import hmac
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.protocol import cursors
from mcp_app.protocol.cursors import Cursor
from mcp_app.protocol.errors import InvalidParams

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
CURSOR = Cursor("default", "tools", 3, "find_orders")
SENTENCE = "The cursor does not come from this list. List again without a cursor."


def opened(text: str, *keys: bytes, server: str = "default", listing: str = "tools"):  # type: ignore[no-untyped-def]
    return cursors.open(text, keys or (KEY,), server=server, listing=listing)


def refusal(text: str, *keys: bytes, **where: str) -> str:
    with pytest.raises(InvalidParams) as caught:
        opened(text, *keys, **where)
    assert caught.value.code == -32602
    return caught.value.message


names = st.text(max_size=60)
placed = st.builds(Cursor, names, names, st.integers(-(2**40), 2**40), names)


@given(placed, st.binary(min_size=1, max_size=64))
def test_what_was_sealed_is_opened(cursor: Cursor, key: bytes) -> None:
    text = cursors.seal(cursor, key)
    assert (
        cursors.open(text, [key], server=cursor.server, listing=cursor.listing)
        == cursor
    )


def test_sealing_is_deterministic_and_safe_in_urls() -> None:
    text = cursors.seal(CURSOR, KEY)
    assert text == cursors.seal(CURSOR, KEY)
    assert text.replace("-", "").replace("_", "").isalnum()


def test_a_rotated_key_still_opens() -> None:
    text = cursors.seal(CURSOR, OTHER_KEY)
    assert opened(text, KEY, OTHER_KEY) == CURSOR
    assert refusal(text, KEY) == SENTENCE


def test_a_cursor_belongs_to_one_list_of_one_server() -> None:
    text = cursors.seal(CURSOR, KEY)
    assert refusal(text, server="other") == SENTENCE
    assert refusal(text, listing="resources") == SENTENCE


def test_every_flipped_bit_is_seen() -> None:
    text = cursors.seal(CURSOR, KEY)
    sealed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    for bit in range(len(sealed) * 8):
        flipped = bytearray(sealed)
        flipped[bit // 8] ^= 1 << (bit % 8)
        altered = base64.urlsafe_b64encode(flipped).decode().rstrip("=")
        assert refusal(altered) == SENTENCE


def test_ten_thousand_altered_cursors_are_refused_alike() -> None:
    random, text = Random(7), cursors.seal(CURSOR, KEY)  # noqa: S311
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
    text = cursors.seal(Cursor("default", "tools", 3, "find_orders"), KEY)
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
    text = cursors.seal(longest, KEY)
    assert len(text) == cursors.LARGEST
    assert opened(text, listing="resources") == longest
    with pytest.raises(ValueError, match="does not fit"):
        cursors.seal(Cursor("default", "resources", 0, "x" * 709), KEY)
    assert refusal("A" * 1_000_000) == SENTENCE
