from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_app.audit.writing import (
    MAX_TEXT_BYTES,
    PendingCalls,
    cut_to_bytes,
    storable_text,
)
from mcp_app.interface.call_record import CallRecord, CallValues
from tests.audit.records import record

NAMES = st.lists(st.sampled_from(["add", "book", "read"]), max_size=12)


def calls_of(pending: PendingCalls) -> list[CallValues]:
    fields = iter(pending._fields)
    return list(zip(*[fields] * len(CallRecord._fields), strict=True))


def gathered(records: list[CallRecord]) -> PendingCalls:
    found = PendingCalls()
    for each in records:
        found.add(each)
    return found


@given(NAMES, st.integers(0, 15))
def test_calls_are_taken_in_the_order_they_came(names: list[str], count: int) -> None:
    records = [record(number, name=name) for number, name in enumerate(names)]
    waiting = gathered(records)
    assert (len(waiting), calls_of(waiting)) == (len(records), records)
    taken = waiting.take_first(count)
    assert (len(taken), calls_of(taken)) == (len(records[:count]), records[:count])
    assert calls_of(waiting) == records[count:]
    waiting.add(last := record(99, name="last"))
    assert calls_of(waiting) == [*records[count:], last]
    assert calls_of(taken) == records[:count]


@given(NAMES)
def test_calls_are_found_by_what_they_have_in_common(names: list[str]) -> None:
    records = [record(number, name=name) for number, name in enumerate(names)]
    found = gathered(records).by_circumstances()
    calls = {
        circumstances: list(zip(*fields, strict=True))
        for circumstances, fields in found.items()
    }
    assert calls == {
        each.circumstances: [
            tuple(other[1:]) for other in records if other[0] == each.circumstances
        ]
        for each in records
    }


def test_what_was_taken_is_not_known_for_ever() -> None:
    waiting = gathered([record(name="left")])
    for number in range(20):
        waiting.add(record(name=f"tool{number}"))
        waiting.take_first(1)
        assert len(waiting) == 1
        assert len(waiting._circumstances) == 1
    last = record(name="tool19")
    waiting.add(last)
    first, second = calls_of(waiting)
    assert first[0] is second[0]


# -- storable --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a\0b", "ab"),
        ("\0\0", ""),
        ("é𝄞", "é𝄞"),
        ("é\0", "é"),
        ("a\ud800b", "a?b"),
        ("\udc00\ud800\0", "??"),
        ("\n\t\x01", "\n\t\x01"),
    ],
)
def test_a_text(text: str, stored: str) -> None:
    assert storable_text(text) == stored
    assert storable_text(stored) == stored
    stored.encode()


def test_a_text_is_cut_by_bytes_and_no_character_is_split() -> None:
    for character, size in {"a": 1, "é": 2, "€": 3, "𝄞": 4}.items():
        for count in (0, 1, 124, 125, 126, 166, 167, 250, 251, 500, 501, 2_000):
            text = character * count
            assert cut_to_bytes(text) == character * min(count, MAX_TEXT_BYTES // size)
    assert [cut_to_bytes("a𝄞é", most) for most in range(8)] == [
        *("", "a", "a", "a", "a"),
        *("a𝄞", "a𝄞", "a𝄞é"),
    ]
