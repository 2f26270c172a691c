"""What tests demand of rounds."""

from __future__ import annotations

from collections.abc import Iterable

from tests.reliability.rounds import Round


def kept(rounds: Iterable[Round], count: int) -> list[Round]:
    """Return the rounds: so many at least, in each of which the promise was kept."""
    found = list(rounds)
    assert len(found) >= count
    assert all(each.asked for each in found)
    assert [each for each in found if not each.kept] == []
    return found
