"""The counter of changes, and the ids that a topic has folded."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from mcp_app.models.questions import COUNTER, Counter, Topic, ids_from_text, ids_to_text


@pytest.mark.django_db
def test_no_number_is_drawn_twice() -> None:
    Counter.objects.create(name="other", value=7)
    first = Counter.objects.draw()
    further = [Counter.objects.draw() for _ in range(3)]
    assert further == [first + 1, first + 2, first + 3]
    assert Counter.objects.get(name=COUNTER).value == first + 3
    assert Counter.objects.get(name="other").value == 7
    # An emptied table counts from one, and keeps no floor.
    Counter.objects.all().delete()
    assert [Counter.objects.draw(), Counter.objects.draw()] == [1, 2]
    assert Counter.objects.get().floor == 0


@pytest.mark.django_db
def test_a_kind_and_a_ref_are_one_topic() -> None:
    Topic.objects.create(kind="tool", ref="7", version=1, changed_ms=0)
    Topic.objects.create(kind="tool", ref="8", version=2, changed_ms=0)
    Topic.objects.create(kind="prompt", ref="7", version=3, changed_ms=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        Topic.objects.create(kind="tool", ref="7", version=4, changed_ms=0)


def test_ids_as_text() -> None:
    for ids in ([], [7], [7, 12345678901], [-1, 0]):
        assert ids_from_text(ids_to_text(ids)) == set(ids)
    assert ids_to_text([]) == ""
    assert ids_from_text(" 3  3 ") == {3}
