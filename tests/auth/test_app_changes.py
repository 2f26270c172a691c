"""Changes of what an app may: locked, told, and never more than was asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone

from mcp_app.auth.rights import AppEnded, Choice, change
from mcp_app.models import AccessToken, Connection
from mcp_app.models.changes import Change
from mcp_app.models.tokens import RIGHTS
from tests.account.apps import app, end

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


def stored(row: AccessToken) -> Choice:
    return Choice.of(Connection.objects.get(pk=row.pk))


def changed_to(row: AccessToken, **choice: Any) -> Choice:
    return change(row.connection, lambda now: replace(now, **choice))


def told() -> list[str]:
    return [each.ref for each in Change.objects.filter(kind=RIGHTS)]


@pytest.mark.databases
def test_what_it_may_is_stored_and_everybody_is_told(ana: User) -> None:
    row = app(ana)
    Change.objects.all().delete()
    soon = timezone.now() + timedelta(days=3)
    changed_to(row, may="read", tags="orders refunds", until=soon)
    assert stored(row) == Choice(
        name="Claude", may="read", tags="orders refunds", until=soon
    )
    assert AccessToken.objects.get().expires == soon
    assert told() == [str(ana.pk)]


def test_it_ends_with_its_last_use_where_that_is_nearer(ana: User) -> None:
    row = app(ana)
    far = timezone.now() + timedelta(days=300)
    changed_to(row, until=far)
    expires = AccessToken.objects.get().expires
    refreshed = Connection.objects.get().refreshed
    assert expires is not None
    assert refreshed is not None
    assert expires == refreshed + timedelta(days=30)


def test_another_name_is_nobody_s_right(ana: User) -> None:
    row = app(ana)
    Change.objects.all().delete()
    changed_to(row, name="On my laptop")
    assert AccessToken.objects.get().name == "On my laptop"
    assert told() == []


def test_until_its_code_is_used_it_ends_with_the_code(ana: User) -> None:
    row = app(ana, is_used=False)
    changed_to(row, may="read", until=timezone.now() + timedelta(days=3))
    assert AccessToken.objects.get().expires == row.connection.code_ends


def test_no_more_than_was_asked_for(ana: User) -> None:
    row = app(ana, may_ask="read", may="read")
    with pytest.raises(ValueError, match="did not ask to change"):
        changed_to(row, may="change")
    wide = app(ana, may="read")
    changed_to(wide, may="change")
    assert (stored(row).may, stored(wide).may) == ("read", "change")


@pytest.mark.parametrize("why", ["person", "code", ""])
def test_what_has_ended_stays_as_it_was(ana: User, why: str) -> None:
    row = app(ana, may="read")
    if why:
        end(row, why)
    else:
        AccessToken.objects.move_end(row.pk, timezone.now())
    with pytest.raises(AppEnded):
        changed_to(row, may="change")
    assert stored(row).may == "read"


def test_what_no_row_can_have_changes_nothing(ana: User) -> None:
    row = app(ana)
    for wrong in ({"name": "a\u202eb"}, {"name": ""}, {"tags": "no/tag!"}):
        with pytest.raises(ValidationError):
            changed_to(row, may="read", **wrong)
    assert stored(row) == Choice.of(row.connection)
    assert stored(row).may == "change"


def test_an_app_that_is_deleted_meanwhile_has_ended(ana: User) -> None:
    row = app(ana)
    connection = row.connection
    row.delete()
    with pytest.raises(AppEnded):
        change(connection, lambda now: replace(now, may="read"))
