"""In which order what waits is taken."""

from __future__ import annotations

import pytest

from mcp_app.pools.user_threads import NOBODY, Owner, Turns


def _taken(*keys: str) -> str:
    """Return the order of items, each with its owner's key; strangers' are digits."""
    turns: Turns[str] = Turns()
    for key in keys:
        turns.put(Owner(key[0], key[0].isdigit()), key)
    return " ".join(turns.take() for _ in keys)


@pytest.mark.parametrize(
    ("put", "taken"),
    [
        ("a1", "a1"),
        ("a1 a2 a3", "a1 a2 a3"),
        ("a1 a2 a3 b1", "a1 b1 a2 a3"),
        ("a1 a2 b1 b2 c1", "a1 b1 c1 a2 b2"),
        ("1a 1b a1 a2", "a1 a2 1a 1b"),
        ("1a 1b 1c 2a a1 b1", "a1 b1 1a 2a 1b 1c"),
    ],
)
def test_the_order(put: str, taken: str) -> None:
    assert _taken(*put.split()) == taken


def test_who_comes_again_is_behind_who_waits() -> None:
    turns: Turns[str] = Turns()
    ann, ben = Owner("a", stranger=False), Owner("b", stranger=False)
    turns.put(ann, "a1")
    turns.put(ben, "b1")
    assert turns.take() == "a1"
    turns.put(ann, "a2")
    assert [turns.take(), turns.take()] == ["b1", "a2"]


def test_nothing_waits() -> None:
    turns: Turns[str] = Turns()
    turns.put(NOBODY, "1")
    turns.take()
    with pytest.raises(LookupError):
        turns.take()
