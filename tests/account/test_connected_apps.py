"""Allowing, changing and ending apps: who did it stands in the log."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime

from mcp_app.account import connected_apps, presentation, token_issuance
from mcp_app.account.connected_apps import ChangedMeanwhile
from mcp_app.account.forms import MAX_TAGS, AppForm
from mcp_app.account.presentation import recent_calls_of
from mcp_app.account.token_issuance import Irreplaceable
from mcp_app.auth.rights import Choice
from mcp_app.models import AccessToken, Connection
from mcp_app.models.changes import Change
from mcp_app.models.tokens import RIGHTS
from mcp_app.site_time import DAY
from tests.account import apps
from tests.account.apps import app
from tests.audit.rows import call

pytestmark = pytest.mark.django_db


def said() -> list[str]:
    return [each.change_message for each in LogEntry.objects.order_by("pk")]


def test_its_owner_and_others_end_an_app(ana: User, bert: User) -> None:
    rows = [app(ana) for _ in range(3)]
    for by, row in zip((ana, bert, None), rows, strict=True):
        token_issuance.end_token(by, row)
        token_issuance.end_token(by, AccessToken.objects.get(pk=row.pk))
    ended = Connection.objects.order_by("pk").values_list("ended", flat=True)
    assert list(ended) == ["person", "staff", "staff"]
    entries = LogEntry.objects.order_by("pk")
    # Of the command line the log knows no user.
    assert [each.user_id for each in entries] == [ana.pk, bert.pk]
    assert said() == ["Ended this connected app."] * 2
    assert entries[0].object_repr == f"Claude ({rows[0].prefix})"


def test_a_change_by_its_owner(ana: User) -> None:
    row = app(ana)
    before = Choice.of_connection(row.connection)
    after = replace(before, may="read", tags="orders")
    connected_apps.change_app(ana, row, before, after)
    assert AccessToken.objects.get().may == "read"
    (entry,) = said()
    assert entry == "Changed this connected app: “Claude”, Read, orders, until never."
    # Whoever saw what it was before that is told so.
    with pytest.raises(ChangedMeanwhile):
        connected_apps.change_app(ana, row, before, before)
    assert AccessToken.objects.get().may == "read"
    assert len(said()) == 1


def test_staff_narrow_and_everybody_is_told(ana: User, bert: User) -> None:
    row, ended = app(ana), app(ana)
    apps.end(ended, "person")
    Change.objects.all().delete()
    assert connected_apps.narrow_to_reading(bert, row)
    for other in (AccessToken.objects.get(pk=row.pk), ended):
        assert not connected_apps.narrow_to_reading(bert, other)
    assert AccessToken.objects.get(pk=row.pk).may == "read"
    assert [each.ref for each in Change.objects.filter(kind=RIGHTS)] == [str(ana.pk)]
    assert said() == [f"Let the connected app “{row}” only look things up."]


@pytest.mark.databases
def test_all_of_one_person_end_together(ana: User, bert: User) -> None:
    token, _ = AccessToken.objects.make(user=ana, name="a laptop")
    kept = {token.pk, app(bert).pk}
    for _ in range(3):
        app(ana)
    mine = list(connected_apps.open_apps(ana))
    Change.objects.all().delete()
    assert connected_apps.end_connected_apps(ana, mine) == 3
    assert [each.ref for each in Change.objects.filter(kind=RIGHTS)] == [str(ana.pk)]
    assert connected_apps.end_connected_apps(ana, mine) == 0
    assert connected_apps.end_connected_apps(ana, connected_apps.open_apps(ana)) == 0
    assert {each.pk for each in AccessToken.objects.filter(revoked=None)} == kept
    assert set(Connection.objects.values_list("ended", flat=True)) == {"person", ""}
    assert len(said()) == 3
    one = presentation.ended_words(1)
    assert one == "Ended: 1 connected app lets nobody in any more."


@pytest.mark.databases
def test_ones_own_and_others_are_locked_in_one_order(ana: User, bert: User) -> None:
    """Two who end the same ones wait for each other."""
    rows = [app(bert), app(ana), app(bert)]
    with CaptureQueriesContext(connection) as statements:
        assert connected_apps.end_connected_apps(ana, rows[::-1]) == 3
    reading = [x["sql"] for x in statements if x["sql"].startswith("SELECT")]
    locking = [each for each in reading if "mcp_app_connection" in each]
    assert len(locking) == 1
    assert "ORDER BY" in locking[0]
    ended = Connection.objects.order_by("pk").values_list("ended", flat=True)
    assert list(ended) == ["staff", "person", "staff"]


def test_the_end_of_many_takes_no_more_statements(ana: User, bert: User) -> None:
    ContentType.objects.get_for_model(AccessToken)
    counts = []
    for many in (1, 30):
        for _ in range(many):
            app(ana)
        with CaptureQueriesContext(connection) as statements:
            assert (
                connected_apps.end_connected_apps(bert, connected_apps.open_apps(ana))
                == many
            )
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_an_app_is_not_replaced(ana: User) -> None:
    row = app(ana)
    with pytest.raises(Irreplaceable, match="A connected app is not replaced"):
        token_issuance.replace_token(ana, row, timedelta())
    with pytest.raises(ValueError, match="is a connected app"):
        row.replace(timedelta())
    assert AccessToken.objects.count() == 1


@pytest.mark.databases
def test_calls_are_counted_by_app_up_to_a_bound(
    ana: User, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = int(time.time() * 1_000)
    for number in range(5):
        family = "f" * 32 if number else "g" * 32
        call(user_name="ana", principal_client=family, time_ms=now - number)
    rows = [AccessToken(family=each * 32) for each in "fgh"]
    with django_assert_num_queries(1):
        calls = recent_calls_of(ana)
    assert [calls.count_words(row) for row in rows] == ["4", "1", "0"]
    monkeypatch.setattr(presentation, "MAX_CALLS", 3)
    some = recent_calls_of(ana)
    words = [some.count_words(row) for row in rows]
    assert words == ["2 or more", "1 or more", "0 or more"]


# -- app form --------------------------------------------------------------------------


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
    assert form.chosen_rights() == Choice.of_connection(row.connection)


def test_it_says_until_when_it_is_now(row: AccessToken) -> None:
    form = AppForm(None, connection=row.connection, tags=Counter())
    until = row.connection.until
    assert until is not None
    ends: Any = form.fields["ends"]
    assert ends.choices[0] == (
        "keep",
        f"As it is: {date_format(localtime(until), DAY)}",
    )


def test_many_groups_are_typed(row: AccessToken) -> None:
    tags = Counter(f"tag{number}" for number in range(MAX_TAGS))
    empty = AppForm(None, connection=row.connection, tags=tags)
    assert empty.initial["tags"] == "orders"
    typed = sent(empty, tags="orders, tag1")
    form = AppForm(typed, connection=row.connection, tags=tags)
    assert form.is_valid(), form.errors
    assert form.chosen_rights().tags == "orders tag1"
