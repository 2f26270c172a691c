"""Who lives, as one process sees it by its own clock."""

from __future__ import annotations

from typing import Final

import pytest

from mcp_app.invalidation.workers import MAX_INTERVAL_S, SILENT_S, PeerMonitor

ME: Final = "me"
HOUR_MS: Final = 3_600_000
BEAT_S: Final = 5.0


def dead(others: PeerMonitor) -> set[str]:
    return set(others.orphaning())


def test_who_does_not_beat_is_dead_after_a_while() -> None:
    others = PeerMonitor(ME)
    for number in range(4):
        assert dead(others) == set()
        rows = [("beats", number, True), ("silent", 7, True), (ME, 7, True)]
        others.observe_owners(rows, number * BEAT_S)
    assert others.orphaning() == {"silent": 7}
    judged = others.peer_states()
    assert judged.dead == {"silent": 7}
    assert judged.alive == {"beats"}


@pytest.mark.parametrize("jump", [-HOUR_MS, HOUR_MS])
def test_no_jump_of_the_databases_clock_matters(jump: int) -> None:
    others = PeerMonitor(ME)
    seen = {"lives": 1_000, "dies": 1_000}
    for number in range(8):
        seen["lives"] += 5_000
        if number == 2:
            # The last beat of the one was before the jump, or is of the future.
            seen["lives"] += jump
            seen["dies"] -= jump
        if number == 3:
            assert dead(others) == set()
        others.observe_owners(
            [(key, each, True) for key, each in seen.items()], number * BEAT_S
        )
    assert dead(others) == {"dies"}
    assert others.peer_states().alive == {"lives"}


def test_who_beats_again_lives() -> None:
    others = PeerMonitor(ME)
    for number in range(5):
        others.observe_owners([("late", 7, True)], number * BEAT_S)
    assert dead(others) == {"late"}
    assert others.peer_states().dead == {"late": 7}
    others.observe_owners([("late", 8, True)], 5 * BEAT_S)
    assert dead(others) == set()
    assert others.peer_states().is_process_alive("late", 8, old=True)


def test_who_stood_still_has_watched_nobody() -> None:
    """A machine that was paused: the others had no time to beat, either."""
    others = PeerMonitor(ME)
    others.observe_owners([("other", 7, True)], 0.0)
    others.observe_owners([("other", 7, True)], 1_000.0)
    assert dead(others) == set()
    others.observe_process("other", 7, 1_000.0 + SILENT_S - MAX_INTERVAL_S)
    assert dead(others) == set()


def test_who_took_its_row_away_is_dead_at_once() -> None:
    others = PeerMonitor(ME)
    others.observe_owners([("gone", None, True)], 0.0)
    assert others.orphaning() == {"gone": None}
    assert not others.observe_process(ME, None, 0.0)


def test_who_has_no_streams_leaves_none_behind() -> None:
    others = PeerMonitor(ME)
    for number in range(4):
        others.observe_owners([("idle", 7, False)], number * BEAT_S)
    assert dead(others) == set()
    assert others.peer_states().dead == {"idle": 7}
    others.observe_owners([], 4 * BEAT_S)
    assert others.peer_states().dead == {}


def test_a_client_that_waits_has_its_process_watched_more_closely() -> None:
    others = PeerMonitor(ME)
    found = [others.observe_process("other", 7, number / 8) for number in range(8 * 15)]
    assert found.index(True) == SILENT_S * 8


def test_who_was_not_watched_for_long_is_judged_by_the_database() -> None:
    others = PeerMonitor(ME)
    others.observe_owners([("new", 7, False)], 0.0)
    judged = others.peer_states()
    assert judged.is_process_alive("new", 7, old=False)
    assert not judged.is_process_alive("new", 7, old=True)
    assert judged.is_process_alive("unknown", 7, old=False)
    # Of one that beats, the database's clock says nothing any more.
    others.observe_owners([("new", 8, False)], 5.0)
    assert others.peer_states().is_process_alive("new", 8, old=True)
