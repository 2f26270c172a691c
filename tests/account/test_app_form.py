"""The form of a connected app: what it begins with, and what it gives."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from mcp_app.account.connected_apps import AppForm
from mcp_app.account.forms import MOST_TAGS
from mcp_app.auth.rights import Choice
from mcp_app.models import AccessToken
from tests.account.apps import app

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(ana: User) -> AccessToken:
    until = timezone.now() + timedelta(days=9)
    return app(ana, tags="orders", until=until)


def sent(form: AppForm, **typed: Any) -> dict[str, Any]:
    return {**form.initial, **typed}


def test_what_is_sent_as_it_was_changes_nothing(row: AccessToken) -> None:
    tags = Counter({"orders": 3, "refunds": 1})
    empty = AppForm(None, connection=row.connection, tags=tags)
    form = AppForm(sent(empty), connection=row.connection, tags=tags)
    assert form.is_valid(), form.errors
    assert form.is_current()
    assert form.choice() == Choice.of(row.connection)


def test_it_says_until_when_it_is_now(row: AccessToken) -> None:
    form = AppForm(None, connection=row.connection, tags=Counter())
    until = row.connection.until
    assert until is not None
    ends: Any = form.fields["ends"]
    assert ends.choices[0] == ("keep", f"As it is: {date_format(localtime(until))}")


def test_many_groups_are_typed(row: AccessToken) -> None:
    tags = Counter(f"tag{number}" for number in range(MOST_TAGS))
    empty = AppForm(None, connection=row.connection, tags=tags)
    assert empty.initial["tags"] == "orders"
    typed = sent(empty, tags="orders, tag1")
    form = AppForm(typed, connection=row.connection, tags=tags)
    assert form.is_valid(), form.errors
    assert form.choice().tags == "orders tag1"


def test_a_page_of_before(row: AccessToken) -> None:
    empty = AppForm(None, connection=row.connection, tags=Counter())
    AccessToken.objects.filter(pk=row.pk).update(may="read")
    row = AccessToken.objects.get(pk=row.pk)
    form = AppForm(sent(empty), connection=row.connection, tags=Counter())
    assert form.is_valid(), form.errors
    assert not form.is_current()
