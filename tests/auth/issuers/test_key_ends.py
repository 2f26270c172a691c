"""Until when what was opened with tokens of others may stay open."""

from __future__ import annotations

import time

import pytest

from mcp_app.auth.issuer_keys import KEPT_S, LATEST, KeyEnds


def test_the_latest_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = KeyEnds()
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    for end in (1_100.0, 1_300.0, 1_200.0):
        ends.note("ana", end)
    ends.note("bert", 1_250.0)
    both = ("ana", "bert", "unheard of")
    for now, over, upcoming in (
        (1_249.9, set(), 1_250.0),
        (1_250.0, {"bert"}, 1_300.0),
        (1_300.0, {"ana", "bert"}, None),
    ):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert ends.over(both) == over
        found = ends.next_end(both)
        assert (None if found is None else found.timestamp()) == upcoming
    assert ends.over(["bert"]) == {"bert"}
    ends.note("ana", 1_400.0)
    assert ends.over(both) == {"bert"}


def test_old_ends_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = KeyEnds()
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    ends.note("ana", 1_000.0)
    monkeypatch.setattr(time, "time", lambda: 1_000.0 + KEPT_S)
    assert ends.over(["ana"]) == {"ana"}
    monkeypatch.setattr(time, "time", lambda: 1_000.1 + KEPT_S)
    assert ends.over(["ana"]) == set()
    assert not ends._ends


def test_any_number_may_be_an_end() -> None:
    ends = KeyEnds()
    ends.note("ana", 1e300)
    found = ends.next_end(["ana"])
    assert found is not None
    assert found.timestamp() == LATEST
