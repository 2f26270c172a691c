from __future__ import annotations

from typing import Any

import pytest
from django.db import Error

from mcp_app.checks.databases import check_databases
from mcp_app.models import durability


@pytest.mark.django_db
def test_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(using: str) -> list[durability.Doubt]:
        raise Error("It is away.")

    monkeypatch.setattr(durability, "doubts", away)
    (message,) = check_databases(None, databases=["default"])
    assert message.id == "mcp_app.I003"
    assert message.msg.endswith("is set up: It is away.")


def test_settings_that_cannot_be_read_are_another_checks_affair(
    settings: Any, db: None
) -> None:
    settings.MCP = {"LIMITS": "of"}
    assert check_databases(None, databases=["default"]) == []
