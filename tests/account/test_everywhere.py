"""What ends a token is true in every process before the page has answered (T34)."""

from __future__ import annotations

from typing import Final

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from mcp_app.invalidation.workers import here
from mcp_app.models import AccessToken
from tests.account.apps import app
from tests.account.test_views import form

pytestmark = pytest.mark.django_db(transaction=True)

ADMIN: Final = "admin:mcp_app_accesstoken"
REPLACE: Final = {"overlap": "0", "once": "a" * 32}


def sent(which: str, key: int) -> tuple[str, dict[str, object]]:
    ways: dict[str, tuple[str, dict[str, object]]] = {
        "account delete": (reverse("mcp_account:delete", args=[key]), {}),
        "account replace": (reverse("mcp_account:replace", args=[key]), {**REPLACE}),
        "admin delete": (reverse(f"{ADMIN}_revoke", args=[key]), {}),
        "admin replace": (reverse(f"{ADMIN}_replace", args=[key]), {**REPLACE}),
        "admin action": (
            reverse(f"{ADMIN}_changelist"),
            {"action": "end_chosen", "_selected_action": [key]},
        ),
    }
    return ways[which]


@pytest.mark.parametrize("in_requests", [False, True])
@pytest.mark.parametrize(
    "which",
    [
        "account delete",
        "account replace",
        "admin delete",
        "admin replace",
        "admin action",
    ],
)
def test_a_page_waits_for_every_process(
    client: Client, monkeypatch: pytest.MonkeyPatch, which: str, in_requests: bool
) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    row, _ = AccessToken.objects.make(user=root, name="x")
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", in_requests)
    held: list[bool] = []

    def committed() -> None:
        ended = AccessToken.objects.get(pk=row.pk).revoked is not None
        held.append(ended and not connection.in_atomic_block)

    monkeypatch.setattr(here, "committed", committed)
    url, form = sent(which, row.pk)
    response = client.post(url, form)
    assert response.status_code in (200, 302)
    # One wait, after the commit, for all that was done; the list waits on its own, too.
    assert held
    assert all(held)
    assert len(held) == 1 or which == "admin action"


@pytest.mark.parametrize("in_requests", [False, True])
@pytest.mark.parametrize(
    ("which", "column"),
    [
        ("account end", "revoked"),
        ("account end all", "revoked"),
        ("account change", "may"),
        ("admin end", "revoked"),
        ("admin narrow", "may"),
        ("admin action end", "revoked"),
        ("admin action narrow", "may"),
    ],
)
def test_what_is_done_to_an_app_waits_for_every_process(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    which: str,
    column: str,
    in_requests: bool,
) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    rows = [app(root), app(root)]
    row = rows[0]
    before = getattr(row, column)
    url, sent_form = ways_of_apps(client, row, [each.pk for each in rows])[which]
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", in_requests)
    held: list[bool] = []

    def committed() -> None:
        now = AccessToken.objects.values_list(column, flat=True).get(pk=row.pk)
        held.append(now != before and not connection.in_atomic_block)

    monkeypatch.setattr(here, "committed", committed)
    assert client.post(url, sent_form).status_code == 302
    assert held
    assert all(held)
    # However many apps, there is one wait; the list waits on its own, too.
    assert len(held) == 1 or "action" in which


def ways_of_apps(
    client: Client, row: AccessToken, keys: list[int]
) -> dict[str, tuple[str, dict[str, object]]]:
    chosen = {"_selected_action": keys}
    listed = reverse(f"{ADMIN}_changelist")
    return {
        "account end": (reverse("mcp_account:delete", args=[row.pk]), {}),
        "account end all": (reverse("mcp_account:end_all"), {}),
        "account change": (
            reverse("mcp_account:app", args=[row.pk]),
            form(client, row, may="read"),
        ),
        "admin end": (reverse(f"{ADMIN}_revoke", args=[row.pk]), {}),
        "admin narrow": (reverse(f"{ADMIN}_narrow", args=[row.pk]), {}),
        "admin action end": (listed, {"action": "end_chosen", **chosen}),
        "admin action narrow": (listed, {"action": "narrow_to_reading", **chosen}),
    }
