"""Bytes that wait for readers: the stream with the most of them is ended first."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mcp_app.process.quotas import Queues


@dataclass(eq=False)
class Waiting:
    """A queue that only counts."""

    queues: Queues
    waiting: int = 0
    over: bool = False

    def change(self, size: int) -> None:
        self.waiting += size
        self.queues.count(self, size)

    def give_up(self) -> None:
        self.over = True
        self.change(-self.waiting)


@pytest.fixture
def queues() -> Queues:
    return Queues(100)


def test_t19_the_fullest_is_ended_first(queues: Queues) -> None:
    small, full, newest = [Waiting(queues) for _ in range(3)]
    small.change(20)
    full.change(50)
    newest.change(30)
    assert not full.over
    newest.change(1)
    assert [each.over for each in (small, full, newest)] == [False, True, False]
    newest.change(60)
    # Now it is the fullest itself.
    assert [each.over for each in (small, newest)] == [False, True]
    assert (queues._waiting, queues._filled) == (20, {small})


def test_t19_as_many_are_ended_as_it_takes(queues: Queues) -> None:
    many = [Waiting(queues) for _ in range(5)]
    for each in many:
        each.change(20)
    one_more = Waiting(queues)
    one_more.change(15)
    assert [each.over for each in many].count(True) == 1
    one_more.change(5 + 4 * 20)
    assert one_more.over
    assert queues._waiting == 80


def test_what_was_sent_counts_no_more(queues: Queues) -> None:
    one, another = Waiting(queues), Waiting(queues)
    one.change(90)
    one.change(-90)
    another.change(90)
    assert not one.over
    assert not another.over
    assert queues._filled == {another}
