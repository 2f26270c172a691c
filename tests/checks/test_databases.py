from __future__ import annotations

from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import Error, connection
from django.db.migrations.recorder import MigrationRecorder

from mcp_app.checks.deployment import OLD_MIGRATION, check_databases
from mcp_app.models import durability


@pytest.mark.django_db
def test_a_database_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(using: str) -> list[durability.Doubt]:
        raise Error("It is away.")

    monkeypatch.setattr(durability, "doubts", away)
    (message,) = check_databases(None, databases=["default"])
    assert message.id == "mcp_app.I003"
    assert message.msg.endswith("could not be read: It is away.")


def test_settings_that_cannot_be_read_are_another_checks_affair(
    settings: Any, db: None
) -> None:
    settings.MCP = {"LIMITS": "of"}
    assert check_databases(None, databases=["default"]) == []


@pytest.mark.django_db
def test_a_database_of_a_development_version_is_left_alone() -> None:
    MigrationRecorder(connection).record_applied(*OLD_MIGRATION)
    with pytest.raises(
        SystemCheckError, match="was made by a development version"
    ) as e:
        call_command("migrate", "mcp_app", verbosity=0, skip_checks=False)
    assert "mcp_app.E020" in str(e.value)
    assert "Use an empty database" in str(e.value)
