from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from mcp_app.models import Once
from mcp_app.models.fields import digest

pytestmark = pytest.mark.django_db


def test_a_key_is_done_once_per_round_trip() -> None:
    key, trips = digest(b"key"), (digest(b"1"), digest(b"2"))
    for trip in trips:
        Once.objects.create(round_trip=trip, key=key, result="1", created_ms=5)
    with pytest.raises(IntegrityError), transaction.atomic():
        Once.objects.create(round_trip=trips[0], key=key, result="2", created_ms=9)


def test_old_rows_are_found() -> None:
    trip = digest(b"1")
    for age in (1, 5):
        Once.objects.create(
            round_trip=trip, key=digest(bytes([age])), result="1", created_ms=age
        )
    assert [row.created_ms for row in Once.objects.older_than(5)] == [1]
