"""A page that is sent twice at the same moment makes one token."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from pytest_django import Settings

from mcp_app.account import making
from mcp_app.account.forms import NewTokenForm, ReplaceForm
from mcp_app.account.making import AlreadyShown, HasEnded
from mcp_app.models import AccessToken, Server

SENT = {"name": "x", "may": "read", "ends": "30", "once": "a" * 32}
AT_ONCE = 4


def new(user: User, **typed: str) -> NewTokenForm:
    form = NewTokenForm({**SENT, **typed}, user=user, servers=Server.objects.none())
    assert form.is_valid(), form.errors
    return form


def replacing(overlap: str = "24", once: str = "b" * 32) -> ReplaceForm:
    form = ReplaceForm({"overlap": overlap, "once": once})
    assert form.is_valid()
    return form


def together(do: Any) -> list[str]:
    """Do it in several threads at once; return what became of each."""
    ready = threading.Barrier(AT_ONCE)

    def done(_: int) -> str:
        ready.wait()
        try:
            do()
        except AlreadyShown:
            return "already"
        finally:
            connection.close()
        return "made"

    with ThreadPoolExecutor(AT_ONCE) as threads:
        return sorted(threads.map(done, range(AT_ONCE)))


@pytest.mark.django_db(transaction=True)
def test_pressed_twice() -> None:
    ana = User.objects.create_user("ana")
    found = together(lambda: making.make(ana, new(ana)))
    assert found == ["already"] * (AT_ONCE - 1) + ["made"]
    assert AccessToken.objects.count() == 1


@pytest.mark.parametrize("overlap", ["0", "24"])
@pytest.mark.django_db(transaction=True)
def test_replaced_twice(overlap: str) -> None:
    ana = User.objects.create_user("ana")
    old, _ = AccessToken.objects.make(user=ana, name="x")

    def replace() -> None:
        making.replace(ana, AccessToken.objects.get(pk=old.pk), replacing(overlap))

    assert together(replace) == ["already"] * (AT_ONCE - 1) + ["made"]
    assert AccessToken.objects.count() == 2


@pytest.mark.django_db
def test_what_has_ended_stays_so() -> None:
    ana = User.objects.create_user("ana")
    row, _ = AccessToken.objects.make(user=ana, name="x")
    row.revoke()
    with pytest.raises(HasEnded, match=r"This token has ended\. Make a new one\."):
        making.replace(ana, row, replacing())
    assert AccessToken.objects.count() == 1


@pytest.mark.django_db
def test_the_next_one_lasts_no_longer() -> None:
    ana = User.objects.create_user("ana")
    old, _ = making.make(ana, new(ana, ends="7"))
    would_have_ended = old.expires
    next_one, _ = making.replace(ana, old, replacing())
    assert next_one.expires == would_have_ended


@pytest.mark.django_db
def test_a_site_without_the_admin_has_no_log_of_it(settings: Settings) -> None:
    ana = User.objects.create_user("ana")
    settings.INSTALLED_APPS = [
        each for each in settings.INSTALLED_APPS if each != "django.contrib.admin"
    ]
    row, _ = making.make(ana, new(ana))
    making.end(ana, row)
    assert row.revoked is not None
