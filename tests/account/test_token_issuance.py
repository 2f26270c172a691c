"""A page that is sent twice at the same moment makes one token."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from mcp_app.account import token_issuance
from mcp_app.account.forms import NewTokenForm, ReplaceForm
from mcp_app.account.token_issuance import AlreadyShown
from mcp_app.models import AccessToken, Server

SENT = {"name": "x", "may": "read", "ends": "30", "once": "a" * 32}
AT_ONCE = 4


def make(user: User, **typed: str) -> tuple[AccessToken, str]:
    form = NewTokenForm({**SENT, **typed}, user=user, servers=Server.objects.none())
    assert form.is_valid(), form.errors
    return token_issuance.issue_token(
        user, idempotency_key=form.idempotency_key(user), **form.token_arguments()
    )


def next_of(row: AccessToken, overlap: str = "24") -> tuple[AccessToken, str]:
    form = ReplaceForm({"overlap": overlap, "once": "b" * 32})
    assert form.is_valid()
    made_with = form.idempotency_key(row.user)
    return token_issuance.replace_token(
        row.user, row, form.overlap_time(), idempotency_key=made_with
    )


def together(do: Any, refused: type[Exception] = AlreadyShown) -> list[str]:
    ready = threading.Barrier(AT_ONCE)

    def done(_: int) -> str:
        ready.wait()
        try:
            do()
        except refused:
            return "already"
        finally:
            connection.close()
        return "made"

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return sorted(threads.map(done, range(AT_ONCE)))


@pytest.mark.django_db(transaction=True)
def test_pressed_twice() -> None:
    ana = User.objects.create_user("ana")
    found = together(lambda: make(ana))
    assert found == ["already"] * (AT_ONCE - 1) + ["made"]
    assert AccessToken.objects.count() == 1


@pytest.mark.parametrize("overlap", ["0", "24"])
@pytest.mark.django_db(transaction=True)
def test_replaced_twice(overlap: str) -> None:
    ana = User.objects.create_user("ana")
    old, _ = AccessToken.objects.make(user=ana, name="x")

    def replace() -> None:
        next_of(AccessToken.objects.get(pk=old.pk), overlap)

    assert together(replace) == ["already"] * (AT_ONCE - 1) + ["made"]
    assert AccessToken.objects.count() == 2


@pytest.mark.django_db
def test_the_next_one_lasts_no_longer() -> None:
    ana = User.objects.create_user("ana")
    old, _ = make(ana, ends="7")
    would_have_ended = old.expires
    next_one, _ = next_of(old)
    assert next_one.expires == would_have_ended


@pytest.mark.django_db
def test_a_site_without_the_admin_has_no_log_of_it(settings: Settings) -> None:
    ana = User.objects.create_user("ana")
    settings.INSTALLED_APPS = [
        each for each in settings.INSTALLED_APPS if each != "django.contrib.admin"
    ]
    row, _ = make(ana)
    token_issuance.end_token(ana, row)
    assert row.revoked is not None


@pytest.mark.django_db
def test_the_command_line_writes_no_log_of_users() -> None:
    ana = User.objects.create_user("ana")
    row, _ = token_issuance.issue_token(None, user=ana, name="x")
    new, _ = token_issuance.replace_token(None, row, timedelta())
    assert (row.revoked is not None, new.revoked) == (True, None)
    token_issuance.end_token(None, new)
    assert new.revoked is not None
    assert not LogEntry.objects.exists()


@pytest.mark.django_db
def test_without_a_page_each_call_makes_a_token() -> None:
    ana = User.objects.create_user("ana")
    for _ in range(2):
        token_issuance.issue_token(None, user=ana, name="x")
    assert AccessToken.objects.count() == 2
