"""Requests that never became a call: counted by the hour, and never too much of it."""

from __future__ import annotations

from typing import Final

from mcp_app.audit.turned_away import (
    GROUPS,
    HOURS,
    MAX_CLIENT_LENGTH,
    OTHERS,
    Reason,
    TurnedAway,
)
from mcp_app.models.calls import HOUR_S

START: Final = 500_000 * HOUR_S
START_MS: Final = START * 1_000


class Clock:
    now = START + 5.0

    def __call__(self) -> float:
        return self.now


def test_they_are_counted_by_hour_reason_and_client() -> None:
    counted = TurnedAway(clock := Clock())
    for client in ("curl/8", "curl/8", "other"):
        counted.count_refusal(Reason.HOST, client)
    counted.count_refusal(Reason.JSON, "curl/8")
    clock.now += HOUR_S
    counted.count_refusal(Reason.HOST, "curl/8")
    assert counted.counts_of_day() == (
        (START_MS, "host", "curl/8", 2),
        (START_MS, "host", "other", 1),
        (START_MS, "json", "curl/8", 1),
        (START_MS + HOUR_S * 1_000, "host", "curl/8", 1),
    )


def test_after_a_day_they_are_forgotten() -> None:
    counted = TurnedAway(clock := Clock())
    counted.count_refusal(Reason.HOST, "")
    clock.now += (HOURS - 1) * HOUR_S
    assert len(counted.counts_of_day()) == 1
    clock.now += HOUR_S
    assert counted.counts_of_day() == ()
    counted.count_refusal(Reason.JSON, "")
    assert [reason for _, reason, _, _ in counted.counts_of_day()] == ["json"]


def test_however_many_clients_there_are_little_is_kept() -> None:
    counted = TurnedAway(Clock())
    for number in range(10_000):
        counted.count_refusal(Reason.NOBODY, f"client {number} {'x' * 1_000}")
    counted.count_refusal(Reason.HOST, "late")
    said = counted.counts_of_day()
    assert len(said) == GROUPS + 2
    assert sum(count for *_, count in said) == 10_001
    assert max(len(client) for _, _, client, _ in said) == MAX_CLIENT_LENGTH
    assert (START_MS, "host", OTHERS, 1) in said
    assert (START_MS, "nobody", OTHERS, 10_000 - GROUPS) in said


def test_who_fills_an_hour_does_not_fill_the_next() -> None:
    counted = TurnedAway(clock := Clock())
    for number in range(GROUPS + 5):
        counted.count_refusal(Reason.NOBODY, f"client {number}")
    clock.now += HOUR_S
    counted.count_refusal(Reason.NOBODY, "Claude Code")
    next_ms = START_MS + HOUR_S * 1_000
    assert counted.counts_of_day()[-1] == (next_ms, "nobody", "Claude Code", 1)
    assert (START_MS, "nobody", OTHERS, 5) in counted.counts_of_day()
    # What no database takes is not kept.
    counted = TurnedAway(Clock())
    counted.count_refusal(Reason.HOST, "a\0b\ud800")
    counted.count_refusal(Reason.HOST, "\0")
    assert [client for _, _, client, _ in counted.counts_of_day()] == ["ab?", ""]
