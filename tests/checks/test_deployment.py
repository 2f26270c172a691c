from __future__ import annotations

from typing import Any

import pytest
from channels.layers import channel_layers
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import Error, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from mcp_app.checks.deployment import (
    OLD_MIGRATION,
    check_databases,
    check_deployment,
    check_hosts,
)
from mcp_app.models import durability


@pytest.mark.parametrize(
    ("hosts", "given", "found"),
    [
        (["example.org"], {}, []),
        (["*"], {}, ["mcp_app.E005"]),
        (["*"], {"HOSTS": ["example.org"]}, []),
        (["*"], {"PUBLIC_URL": "https://example.org/mcp"}, []),
        (["example.org"], {"HOSTS": ["*"]}, ["mcp_app.E006"]),
        (["example.org"], {"ORIGINS": ["*"]}, ["mcp_app.E006"]),
        # What cannot be read is told by the other check.
        (["*"], {"LIMITS": "of"}, []),
    ],
)
def test_deployment(hosts: list[str], given: dict[str, Any], found: list[str]) -> None:
    with override_settings(ALLOWED_HOSTS=hosts, MCP=given):
        told = [each for each in check_deployment(None) if each.level > checks.INFO]
    assert [each.id for each in told] == found


def test_who_refuses_every_host_is_told_what_to_set() -> None:
    with override_settings(ALLOWED_HOSTS=["*"], MCP={}):
        error, *_ = check_deployment(None)
        assert [each.id for each in check_hosts(None)] == ["mcp_app.W005"]
    with override_settings(ALLOWED_HOSTS=["*"], MCP={}, DEBUG=True):
        assert check_hosts(None) == []
    assert 'PUBLIC_URL"] to the address that clients use, such as' in str(error.hint)


@pytest.mark.parametrize(
    ("setting", "right", "wrong"),
    [
        ("SECURE_SSL_REDIRECT", "https://www.example.org", "http://example.org"),
        ("PREPEND_WWW", "https://www.example.org", "https://example.org"),
    ],
)
def test_redirects(setting: str, right: str, wrong: str) -> None:
    for given, count in (
        ({}, 1),
        ({"PUBLIC_URL": f"{right}/mcp"}, 0),
        ({"PUBLIC_URL": f"{wrong}/mcp"}, 1),
    ):
        site = {setting: True, "ALLOWED_HOSTS": ["example.org"]}
        with override_settings(MCP=given, **site):
            found = [e for e in check_deployment(None) if e.id == "mcp_app.W018"]
        assert [each.msg.partition(" ")[0] for each in found] == [setting] * count


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        ("channels.layers.InMemoryChannelLayer", ["mcp_app.I001"]),
        ("channels_redis.pubsub.RedisPubSubChannelLayer", []),
    ],
)
def test_a_doorbell_that_nobody_else_hears(backend: str, found: list[str]) -> None:
    layers = {"default": {"BACKEND": backend}}
    with override_settings(CHANNEL_LAYERS=layers, ALLOWED_HOSTS=["example.org"]):
        channel_layers.backends.clear()
        assert [each.id for each in check_deployment(None)] == found
    channel_layers.backends.clear()


# -- databases -------------------------------------------------------------------------


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
