"""What a new token may be: when it ends, and what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import RFC_4122

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from mcp_app.account.forms import AnyonesTokenForm, NewTokenForm
from mcp_app.models import Server

pytestmark = pytest.mark.django_db

SENT = {"name": "x", "may": "read", "once": "a" * 32}


def form(user: User, kind: type[NewTokenForm] = NewTokenForm, **typed: Any) -> Any:
    sent = {**SENT, "ends": "30", **typed}
    return kind(sent, user=user, servers=Server.objects.all())


def end(user: User, **typed: Any) -> datetime | None:
    filled = form(user, **typed)
    assert filled.is_valid(), filled.errors
    found: datetime | None = filled.token_arguments()["expires"]
    return found


@pytest.mark.parametrize("days", [1, 7, 30, 90])
def test_it_ends_after_some_days(ana: User, days: int) -> None:
    ends = end(ana, ends=str(days))
    assert ends is not None
    assert abs(ends - timezone.now() - timedelta(days=days)) < timedelta(hours=1)


def test_it_is_good_until_the_end_of_a_day(ana: User, settings: Settings) -> None:
    settings.TIME_ZONE = "Asia/Tokyo"
    with timezone.override("Asia/Tokyo"):
        day = timezone.localdate() + timedelta(days=40)
        ends = end(ana, ends="date", until=day.isoformat())
        assert ends is not None
        last = timezone.localtime(ends - timedelta(seconds=1))
        assert (last.date(), timezone.localtime(ends).hour) == (day, 0)


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"ends": "date"}, "until", "Fill in a date"),
        ({"ends": "date", "until": "2020-01-01"}, "until", "is in the past"),
        ({"ends": "date", "until": "2999-01-01"}, "until", "is too far ahead"),
        ({"ends": "date", "until": "soon"}, "until", "Enter a valid date"),
        ({"ends": "never"}, "ends", "Select a valid choice"),
        ({"ends": "31"}, "ends", "Select a valid choice"),
        ({"may": "all"}, "may", "Select a valid choice"),
        ({"name": ""}, "name", "required"),
        ({"name": "a\u202eb"}, "name", "U+202E"),
        ({"networks": "home"}, "networks", "“home” is not a network"),
        ({"tags": "a/b"}, "tags", "“a/b” cannot be a tag"),
        ({"servers": ["77"]}, "servers", "Select a valid choice"),
        ({"servers": ["9" * 30]}, "servers", "server"),
        ({"networks": " ,"}, "networks", "has no entry"),
        ({"tags": ","}, "tags", "has no entry"),
    ],
)
def test_what_is_refused(
    ana: User, typed: dict[str, Any], field: str, said: str
) -> None:
    filled = form(ana, **typed)
    assert list(filled.errors) == [field]
    assert said in str(filled.errors[field])


def test_never_where_the_site_allows_it(ana: User, settings: Settings) -> None:
    settings.MCP = {"ENDLESS_TOKENS": True}
    assert end(ana, ends="never") is None
    assert end(ana, ends="date", until="2999-01-01") is not None
    assert end(ana, ends="date", until="9999-12-30") is not None
    last = form(ana, ends="date", until="9999-12-31")
    assert "too far ahead" in str(last.errors["until"])


def test_a_service_user_is_an_active_one(ana: User, bert: User) -> None:
    chosen = form(ana, AnyonesTokenForm, service_user="bert")
    assert chosen.is_valid()
    assert chosen.token_arguments()["user"] == bert
    mine = form(ana, AnyonesTokenForm)
    assert mine.is_valid()
    assert mine.token_arguments()["user"] == ana
    bert.is_active = False
    bert.save()
    refused = form(ana, AnyonesTokenForm, service_user="bert")
    said = str(refused.errors["service_user"])
    assert "no active user whose username is “bert”." in said


def test_every_page_has_a_number_that_all_databases_keep(ana: User) -> None:
    """MariaDB refuses a UUID whose version and variant are not of RFC 4122."""
    found = set()
    for number in range(50):
        filled = form(ana, once=f"{number:032x}")
        assert filled.is_valid()
        made_with = filled.idempotency_key(ana)
        assert (made_with.version, made_with.variant) == (5, RFC_4122)
        found.add(made_with)
    assert len(found) == 50
