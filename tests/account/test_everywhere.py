"""What ends a token is true in every process before the page has answered (T34)."""

from __future__ import annotations

from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from mcp_app.invalidation.workers import here
from mcp_app.models import AccessToken
from tests.account.apps import app
from tests.account.conftest import account
from tests.account.test_views import form

pytestmark = pytest.mark.django_db(transaction=True)

ADMIN: Final = "admin:mcp_app_accesstoken"
REPLACE: Final = {"overlap": "0", "once": "a" * 32}
WAYS: Final = [
    *((False, f"{place} {way}", "revoked") for place in ("account", "admin")
      for way in ("delete", "replace")),
    (False, "admin action end_chosen", "revoked"),
    *((True, f"{place} delete", "revoked") for place in ("account", "admin")),
    *((True, "account end_all", "revoked"), (True, "account change", "may")),
    *((True, "admin narrow", "may"), (True, "admin action end_chosen", "revoked")),
    (True, "admin action narrow_to_reading", "may"),
]  # fmt: skip
"""Whether it is of an app, how a token is ended or changed, and the column of that."""


def sent(client: Client, way: str, rows: list[AccessToken]) -> tuple[str, Any]:
    key, (place, *words) = rows[0].pk, way.split()
    if words == ["change"]:
        return account("app", key), form(client, rows[0], may="read")
    if len(words) > 1:
        chosen = {"action": words[1], "_selected_action": [each.pk for each in rows]}
        return reverse(f"{ADMIN}_changelist"), chosen
    typed = REPLACE if words == ["replace"] else {}
    if place == "account":
        return account(words[0], *([] if words == ["end_all"] else [key])), typed
    name = {"delete": "revoke"}.get(words[0], words[0])
    return reverse(f"{ADMIN}_{name}", args=[key]), typed


@pytest.mark.parametrize("in_requests", [False, True])
@pytest.mark.parametrize(("is_app", "way", "column"), WAYS)
def test_a_page_waits_for_every_process(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    is_app: bool,
    way: str,
    column: str,
    in_requests: bool,
) -> None:
    root = User.objects.create_superuser("root")
    client.force_login(root)
    rows = [AccessToken.objects.make(user=root, name="x")[0]]
    if is_app:
        rows = [app(root), app(root)]
    before = getattr(rows[0], column)
    url, typed = sent(client, way, rows)
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", in_requests)
    held: list[bool] = []

    def committed() -> None:
        now = AccessToken.objects.values_list(column, flat=True).get(pk=rows[0].pk)
        held.append(now != before and not connection.in_atomic_block)

    monkeypatch.setattr(here, "committed", committed)
    assert client.post(url, typed).status_code in (200, 302)
    # One wait, after the commit, for all that was done; the list waits on its own, too.
    assert held
    assert all(held)
    assert len(held) == 1 or "action" in way
