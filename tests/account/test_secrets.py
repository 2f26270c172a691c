"""No token is anywhere but on the one page that shows it (T18)."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

import django
import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache
from django.db import connection
from django.db.models.signals import post_save
from django.test import Client
from django.urls import reverse
from django.utils.log import AdminEmailHandler
from pytest_django import Settings

from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import Secret
from tests.account.conftest import CANARY, account, filled, shown

pytestmark = pytest.mark.django_db

BARE: Final = CANARY.removeprefix("mcp_")
PLACES: Final = ("account", "admin", "connect")
Open = Callable[[str], tuple[Client, str, Callable[[int], str]]]


@pytest.fixture
def opened(client: Client, admin_user: User) -> Open:
    """Return who makes a token, and where, on one of the pages."""
    client.force_login(admin_user)
    client.raise_request_exception = False

    def there(place: str) -> tuple[Client, str, Callable[[int], str]]:
        if place == "account":
            return client, account("add"), lambda key: account("replace", key)
        name = "admin:mcp_app_accesstoken"
        add = reverse(f"{name}_add")
        if place == "connect":
            key = Server.objects.get().pk
            add = reverse("admin:mcp_app_server_connect", args=[key])
        return (client, add, lambda key: reverse(f"{name}_replace", args=[key]))

    return there


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], str]]:
    """Return a function that tells what was logged by anybody, statements included."""
    caplog.set_level(logging.DEBUG)
    for name in ("django", "mcp_app", "django.db.backends"):
        caplog.set_level(logging.DEBUG, name)
    logger = logging.getLogger("mcp_app")
    logger.propagate, before = True, logger.propagate
    connection.force_debug_cursor = True
    yield lambda: "\n".join(f"{x.getMessage()} {x.args}" for x in caplog.records)
    connection.force_debug_cursor = False
    logger.propagate = before


def rows() -> str:
    found = []
    for model in apps.get_models():
        found += [str(each) for each in model._default_manager.values_list()]
    return "\n".join(found)


@pytest.mark.parametrize("place", PLACES)
def test_a_token_is_stored_nowhere(
    opened: Open, canary: str, heard: Callable[[], str], place: str
) -> None:
    client, url, replace_url = opened(place)
    response = client.post(url, filled(client, url))
    assert shown(response) == canary
    assert "Location" not in response.headers
    assert BARE not in str(response.headers) + str(response.cookies)
    key = AccessToken.objects.get().pk
    AccessToken.objects.update(digest="0" * 64)
    again = replace_url(key)
    replaced = client.post(again, filled(client, again, overlap="24"))
    assert shown(replaced) == canary
    assert LogEntry.objects.count() == 3
    assert "INSERT INTO" in heard()
    session = json.dumps(dict(client.session))
    kept = str(getattr(cache, "_cache", ""))
    assert BARE not in rows() + heard() + session + kept
    later = client.get(account("tokens"))
    assert BARE not in later.content.decode()


def away(sender: Any, **_: object) -> None:
    raise RuntimeError("The disk is full.")


# Of a setting that Django has since 6.1, for mail.
@pytest.mark.filterwarnings("ignore:.*MAILERS:Warning")
@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_it_is_on_no_error_page(
    opened: Open,
    canary: str,
    heard: Callable[[], str],
    settings: Settings,
    place: str,
    debug: bool,
) -> None:
    """The row is there, and what comes after it fails."""
    settings.DEBUG = debug
    root = "root@example.org"
    settings.ADMINS = [root if django.VERSION >= (6, 0) else ("root", root)]
    by_mail = logging.getLogger("django.request")
    sent = AdminEmailHandler(include_html=True)
    by_mail.addHandler(sent)
    client, url, _ = opened(place)
    typed = filled(client, url)
    post_save.connect(away, sender=LogEntry)
    try:
        response = client.post(url, typed)
    finally:
        post_save.disconnect(away, sender=LogEntry)
        by_mail.removeHandler(sent)
    assert response.status_code == 500
    mails = "".join(str(each.message()) for each in mail.outbox)
    assert "The disk is full." in mails
    assert BARE not in mails + response.content.decode() + heard()
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_page_that_cannot_be_drawn_tells_nothing(
    opened: Open,
    canary: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    debug: bool,
) -> None:
    """What is to be drawn is at hand where the error is."""
    settings.DEBUG = debug
    client, url, _ = opened(place)
    typed = filled(client, url)

    def fail(*_: object, **__: object) -> str:
        raise RuntimeError("It cannot be drawn.")

    monkeypatch.setattr("django.template.defaulttags.CsrfTokenNode.render", fail)
    monkeypatch.setattr("django.template.loader_tags.IncludeNode.render", fail)
    response = client.post(url, typed)
    assert response.status_code == 500
    text = response.content.decode()
    assert ("It cannot be drawn." in text) == debug
    assert BARE not in text


def test_a_secret_is_shown_where_it_is_meant_to_be() -> None:
    secret = Secret(CANARY)
    assert f"{secret}" == str(secret) == CANARY
    assert BARE not in repr([secret, (secret,), {"token": secret}])
