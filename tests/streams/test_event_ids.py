"""Ids of events of standing streams, and of requests."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from secrets import token_bytes
from typing import Final

import pytest

from mcp_app.protocol.errors import InvalidRequest
from mcp_app.streams.event_ids import (
    EventIds,
    is_answer,
    new_public_id,
    of_message,
    of_request,
    position_of,
)

SESSION: Final = "5" * 64
PUBLIC_ID: Final = new_public_id(SESSION)


@pytest.mark.parametrize("number", [0, 1, 9, 10, 1_234_567, 10**18 - 1])
@pytest.mark.parametrize("more", ["", ".1", ".120"])
def test_what_an_id_says(number: int, more: str) -> None:
    for logged in (0, 1, number):
        found = position_of(f"{PUBLIC_ID}.{logged}.{number}{more}", SESSION)
        assert found == (logged, number)


TAILS: Final = (
    *("", ".0", ".0.", "..7", ".0.7.", ".0.7.0", ".0.7.1.1", ".0.-7", ".0.+7"),
    *(".0.07", ".00.7", ".0.1_000", ".0.7 ", ".0.7\n", f".0.{10**18}"),
    # Digits elsewhere, as a server sees them in a header: latin-1.
    *(".0.\N{ARABIC-INDIC DIGIT THREE}", ".0.\N{SUPERSCRIPT TWO}"),
)
WRONG: Final = [
    *("", ".", "1", "abc.7", f" {PUBLIC_ID}.0.7"),
    *(f"{PUBLIC_ID}{tail}" for tail in TAILS),
    f"{PUBLIC_ID[:-1]}.0.7",
    f"{PUBLIC_ID}A.0.7",
    f"{'A' * 24}.0.7",
    f"{PUBLIC_ID[:12]}{'-' * 12}.0.7",
    f"{new_public_id('6' * 64)}.0.7",
]


@pytest.mark.parametrize("event_id", WRONG, ids=range(len(WRONG)))
def test_wrong_ids_have_one_answer(event_id: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        position_of(event_id, SESSION)
    assert refused.value.message == "Last-Event-ID is not an event of this session."
    assert refused.value.http_status == 400


def test_t11_each_bit_counts() -> None:
    own = urlsafe_b64decode(PUBLIC_ID)
    made_up = {token_bytes(len(own)) for _ in range(10_000)}
    for bit in range(len(own) * 8):
        flipped = bytearray(own)
        flipped[bit // 8] ^= 1 << bit % 8
        made_up.add(bytes(flipped))
    errors = set()
    for each in made_up:
        for event_id in (
            f"{urlsafe_b64encode(each).decode()}.0.7",
            each.decode("latin-1"),
        ):
            with pytest.raises(InvalidRequest) as refused:
                position_of(event_id, SESSION)
            errors.add((refused.value.message, refused.value.http_status))
    assert len(errors) == 1


def test_streams_have_different_ids() -> None:
    made = {new_public_id(SESSION) for _ in range(100)}
    assert len(made) == 100
    assert {len(each) for each in made} == {24}


def test_ids_of_a_stream() -> None:
    ids = EventIds(SESSION)
    ids.announced = 3
    given = [
        ids.current_id(),
        *(ids.next_change_id(number) for number in (3, 3, 7, 7, 5, 8)),
    ]
    parts = [each.removeprefix(f"{ids.public_id}.0.") for each in given]
    assert parts == ["3", "3.1", "3.2", "7", "7.1", "7.2", "8"]
    said = [position_of(each, SESSION) for each in given]
    assert [each.changes for each in said] == [3, 3, 3, 7, 7, 7, 8]


def test_ids_of_log_messages() -> None:
    ids = EventIds(SESSION)
    given = [
        ids.next_change_id(3),
        ids.next_change_id(3),
        ids.next_logged(1),
        ids.next_change_id(3),
        ids.next_change_id(4),
    ]
    given += [ids.next_logged(2), ids.next_logged(3)]
    parts = [each.removeprefix(f"{ids.public_id}.") for each in given]
    assert parts == ["0.3", "0.3.1", "1.3", "1.3.1", "1.4", "2.4", "3.4"]


def test_what_an_id_of_a_request_says() -> None:
    for number in (0, 1, 10, 10**17):
        event_id = of_message(PUBLIC_ID, number)
        assert event_id == f"{PUBLIC_ID}.{number}"
        assert of_request(event_id, SESSION) == (PUBLIC_ID, number)


def test_ids_of_other_sessions_are_wrong() -> None:
    for event_id in (f"{new_public_id('6' * 64)}.1", f"{'A' * 24}.1"):
        with pytest.raises(InvalidRequest):
            of_request(event_id, SESSION)


@pytest.mark.parametrize(
    ("message", "answers"),
    [
        ({"id": 1, "result": {}}, True),
        ({"id": 1, "error": {"code": -32603, "message": "gone"}}, True),
        ([{"id": 1, "result": {}}], True),
        ({"method": "notifications/progress", "params": {}}, False),
        ({"id": "s1", "method": "elicitation/create", "params": {}}, False),
    ],
)
def test_a_question_or_a_notification_does_not_end_a_stream(
    message: object, answers: bool
) -> None:
    assert is_answer(json.dumps(message).encode()) is answers
