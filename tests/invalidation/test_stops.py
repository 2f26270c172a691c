"""Stopping and starting hold their caller until it is true in every process."""

from __future__ import annotations

import pytest
from django.db import transaction

from mcp_app.invalidation import workers
from mcp_app.models import Stop
from mcp_app.models.stops import By, Scope

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.databases]

KIM = By("kim")


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many stops were committed each time that somebody waited."""
    found: list[int] = []
    count = Stop.objects.on().count
    monkeypatch.setattr(workers.here, "committed", lambda: found.append(count()))
    return found


def test_once_for_a_commit(held: list[int]) -> None:
    with transaction.atomic():
        for _ in range(2):
            workers.stop(Scope.EVERYTHING, by=KIM)
        assert held == []
    assert len(held) == 1


def test_a_start_waits_where_it_ended_something(held: list[int]) -> None:
    made = workers.stop(Scope.CHANGES, by=KIM)
    assert held == [1]
    assert workers.start([made.pk], by=KIM) == [made]
    assert held == [1, 0]
    assert workers.start([made.pk], by=KIM) == []
    assert held == [1, 0]
