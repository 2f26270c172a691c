"""When something ends: a number of days, the end of a day, or never."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from django.utils import timezone

from mcp_app.account.forms import MAX_LIFETIME, ExpiryChoice


class Choice(ExpiryChoice):
    days = (1, 30)
    usual_days = 30


class Endless(Choice):
    may_never_end = True


def choice(form: type[Choice] = Choice, **typed: Any) -> Choice:
    return form({"ends": "date", **typed})


def test_days_and_the_end_of_a_day() -> None:
    days = choice(ends="30")
    assert days.is_valid()
    end = days.chosen_end()
    assert end is not None
    assert abs(end - timezone.now() - timedelta(days=30)) < timedelta(minutes=10)
    today = choice(until=timezone.localdate())
    assert today.is_valid()
    end = today.chosen_end()
    assert end is not None
    midnight = timezone.localtime(end)
    assert midnight.date() == timezone.localdate() + timedelta(days=1)
    assert (midnight.hour, midnight.minute) == (0, 0)


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (None, "Fill in a date"),
        (timedelta(days=-1), "is in the past"),
        (MAX_LIFETIME + timedelta(days=2), "is too far ahead"),
    ],
)
def test_a_date_that_cannot_be(days: timedelta | None, said: str) -> None:
    until: date | str = "" if days is None else timezone.localdate() + days
    form = choice(until=until)
    assert not form.is_valid()
    assert said in str(form.errors["until"])


@pytest.mark.parametrize(
    ("form", "endless", "is_valid"),
    [(Choice, True, False), (Endless, False, False), (Endless, True, True)],
)
def test_never_only_where_the_site_allows_it(
    settings: Any, form: type[Choice], endless: bool, is_valid: bool
) -> None:
    settings.MCP = {**settings.MCP, "ENDLESS_TOKENS": endless}
    asked = choice(form, ends="never")
    assert asked.is_valid() is is_valid
    assert not is_valid or asked.chosen_end() is None


def test_the_usual_days_are_chosen_at_first() -> None:
    assert 'value="30" selected' in str(Choice()["ends"])
