"""How often a person may call: buckets, by hand-set clocks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from mcp_app.conf import Limits
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.process import rates
from mcp_app.process.rates import MINUTE_S, Rates
from mcp_app.protocol.errors import Unavailable

ANNA: Final = "u1"
BERT: Final = "u2"
FAR: Final = "@203.0.113.7"


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def entry(name: str = "find", calls_per_minute: int | None = None) -> Any:
    definition = ToolDefinition(name=name, calls_per_minute=calls_per_minute)
    return SimpleNamespace(definition=definition)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limited(clock: Clock) -> Rates:
    limits = Limits(
        tool_rate=60, tool_burst=10, request_rate=120, request_burst=20, batch=20
    )
    return Rates(limits, clock=clock)


def calls(limited: Rates, number: int, person: str = ANNA, **of: Any) -> list[int]:
    return [limited.wait_for_tool(person, entry(**of)) for _ in range(number)]


def test_a_burst_and_then_one_for_one(limited: Rates, clock: Clock) -> None:
    assert calls(limited, 12) == [0] * 10 + [1, 1]
    clock.now += 1
    assert calls(limited, 2) == [0, 1]
    clock.now += MINUTE_S
    assert calls(limited, 11) == [0] * 10 + [1]


def test_the_wait_is_enough(limited: Rates, clock: Clock) -> None:
    for _ in range(200):
        wait = limited.wait_for_tool(ANNA, entry(calls_per_minute=7))
        if wait:
            clock.now += wait
            assert calls(limited, 1, calls_per_minute=7) == [0]
        clock.now += 0.37


def test_t20_who_calls_too_often_gets_the_rate_and_the_burst(
    limited: Rates, clock: Clock
) -> None:
    for pause, fewest, most in ((1.01, 3_000, 3_000), (0.1, 300, 311)):
        done = 0
        for _ in range(3_000):
            done += not calls(limited, 1)[0]
            clock.now += pause
        assert fewest <= done <= most


def test_nobody_fills_the_bucket_of_another(limited: Rates) -> None:
    assert calls(limited, 11)[-1]
    assert calls(limited, 1, BERT) == [0]
    assert calls(limited, 1, FAR) == [0]
    assert calls(limited, 1, name="other") == [0]


def test_a_tool_has_a_rate_of_its_own(limited: Rates, clock: Clock) -> None:
    assert calls(limited, 4, calls_per_minute=3) == [0, 0, 0, 20]
    assert calls(limited, 101, name="busy", calls_per_minute=6_000)[-2:] == [0, 1]
    sentence = limited.sentence(entry(calls_per_minute=3), 20)
    assert sentence == (
        "You call find too often: one person may call it 3 times a minute, and at most"
        " 3 times in one burst. Wait 20 seconds. If there are many items, ask for more"
        " of them in one call."
    )
    sentence = limited.sentence(entry(calls_per_minute=1), 1)
    assert "once a minute, and at most once in one burst. Wait 1 second. If" in sentence
    # Published anew with another rate.
    clock.now += 21
    assert calls(limited, 2, calls_per_minute=3) == [0, 19]
    assert calls(limited, 2, calls_per_minute=600) == [0, 0]


def test_requests_are_refused_at_the_door(limited: Rates, clock: Clock) -> None:
    limited.check_requests(ANNA, 20)
    with pytest.raises(Unavailable) as refused:
        limited.check_requests(ANNA)
    assert refused.value.http_status == 429
    assert refused.value.headers == {"Retry-After": "1"}
    assert refused.value.message == "Too many requests. Try again in 1 second."
    limited.check_requests(BERT, 20)
    clock.now += 5
    # A batch is taken as a whole, or not at all.
    with pytest.raises(Unavailable, match="Try again in 5 seconds"):
        limited.check_requests(ANNA, 20)
    limited.check_requests(ANNA, 10)


def test_what_is_never_refused_is_charged(limited: Rates, clock: Clock) -> None:
    for _ in range(100):
        limited.note_requests(ANNA)
    with pytest.raises(Unavailable, match="Try again in 1 second"):
        limited.check_requests(ANNA)
    clock.now += 1
    limited.check_requests(ANNA)


def test_nobody_in_particular_has_no_limit(limited: Rates) -> None:
    assert set(calls(limited, 100, "")) == {0}
    limited.check_requests("", 10_000)
    limited.note_requests("")
    assert limited.charge_of("", entry()) is None
    assert len(limited) == 0
    # Neither has anybody where limits are switched off.
    off = Rates(Limits(rates=False))
    assert set(calls(off, 1_000)) == {0}
    off.check_requests(ANNA, 10_000)
    assert len(off) == 0


def test_a_plain_call_takes_from_both_or_none(limited: Rates, clock: Clock) -> None:
    charge = limited.charge_of(ANNA, entry())
    assert charge is not None
    admitted = [limited.admits(charge, clock.now) for _ in range(11)]
    assert admitted == [*[True] * 10, False]
    # Of 20 requests 10 are left: what was refused by the tool took none.
    limited.check_requests(ANNA, 10)
    with pytest.raises(Unavailable):
        limited.check_requests(ANNA)
    other = limited.charge_of(ANNA, entry("other"))
    assert other is not None
    assert not limited.admits(other, clock.now)
    clock.now += 0.6
    assert limited.admits(other, clock.now)
    assert calls(limited, 10, name="other") == [0] * 9 + [1]


def test_what_is_kept_is_the_bucket_of_everybody(limited: Rates, clock: Clock) -> None:
    charge = limited.charge_of(ANNA, entry())
    assert charge is not None
    for _ in range(5):
        assert limited.is_current(charge, clock.now)
        clock.now += 11
        assert limited.admits(charge, clock.now)
    clock.now += 10
    assert not limited.is_current(charge, clock.now)
    assert calls(limited, 10) == [0] * 10
    again = limited.charge_of(ANNA, entry())
    assert again is not None
    assert limited.is_current(again, clock.now)
    assert not limited.admits(again, clock.now)


def test_t20_addresses_fill_no_memory_and_refuse_no_person(
    limited: Rates, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "MOST", 100)
    for number in range(500):
        limited.wait_for_tool(f"@2001:db8:{number}::/64", entry())
        limited.wait_for_tool(f"u{number}", entry())
        assert len(limited) <= 210
    assert calls(limited, 1, "@2001:db8:ffff::/64") == [1]
    assert calls(limited, 10, "u900") == [0] * 10
    # Those that are unused for two minutes make room.
    clock.now += 2 * MINUTE_S
    assert calls(limited, 1, "@2001:db8:ffff::/64") == [0]
    assert len(limited._addresses) == 1


def test_a_share_is_a_part_of_rate_and_burst(limited: Rates, clock: Clock) -> None:
    used: list[rates.Bucket] = []
    limited._used = used.append
    assert calls(limited, 1) == [0]
    [bucket] = used
    clock.now += MINUTE_S / 2
    bucket.set_share(0.5)
    assert calls(limited, 6) == [0] * 5 + [2]
    clock.now += 2
    assert calls(limited, 2) == [0, 2]
    # A part of less than one call is one call.
    bucket.set_share(0.02)
    clock.now += 50
    assert calls(limited, 2) == [0, 50]
