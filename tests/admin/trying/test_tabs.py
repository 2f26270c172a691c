"""The tabs have no transaction of their own."""

from __future__ import annotations

import pytest
from django.db import connections

from mcp_app.admin.trying.lists_page import outside_transactions


def test_a_view_outside_the_transactions_of_all_databases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(
        connections.settings, "archive", connections.settings["default"]
    )
    view = outside_transactions(lambda request: request)
    assert vars(view)["_non_atomic_requests"] == {"default", "archive"}
