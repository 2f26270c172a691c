"""System checks of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from channels.layers import channel_layers
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings

from mcp_app import checks as checks_of_app
from mcp_app.catalog.registry import Registry
from mcp_app.checks import TAG, check_deployment, check_settings


def ids(given: Any) -> list[str | None]:
    with override_settings(MCP=given):
        return [each.id for each in check_settings(None)]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, []),
        ({"TREADS": 1}, ["mcp_app.W001"]),
        ([], ["mcp_app.E001"]),
        ({"LIMITS": "of"}, ["mcp_app.E001"]),
        ({"THREADS": "8", "TREADS": 1}, ["mcp_app.W001", "mcp_app.E002"]),
        ({"AROUND": ["tests.server.arounds.noting"]}, []),
        ({"AROUND": ["tests.server.arounds.unheard_of"]}, ["mcp_app.E003"]),
        (
            {"AUTHENTICATION": {"a": "no.such.module", "b": "undotted"}},
            ["mcp_app.E003", "mcp_app.E003"],
        ),
        ({"AROUND": ["tests.drill.running.ROOT"]}, ["mcp_app.E003"]),
        ({"STATE_KEYS": ["k" * 32, "k" * 31]}, ["mcp_app.E004"]),
        (
            {
                "PUBLIC_URL": "https://example.org/mcp",
                "HOSTS": ["example.org", ".example.org", "[::1]", "127.0.0.1"],
                "ORIGINS": ["https://example.org", "http://localhost:8000"],
                "AUTHENTICATION": {"token": "tests.auth.callables.by_name"},
            },
            [],
        ),
        ({"PUBLIC_URL": "example.org"}, ["mcp_app.W002"]),
        ({"ORIGINS": ["https://example.org/"]}, ["mcp_app.W002"]),
        ({"HOSTS": ["https://example.org", "a b"]}, ["mcp_app.W002"] * 2),
        (
            {
                "AUTHENTICATION": dict.fromkeys(
                    ("public", "two words", ""), "tests.auth.callables.by_name"
                )
            },
            ["mcp_app.W002"] * 3,
        ),
        # Of what has the wrong type nothing more can be said.
        ({"AROUND": 7, "STATE_KEYS": ["short"]}, ["mcp_app.E002"]),
    ],
)
def test_settings(given: Any, found: list[str]) -> None:
    assert ids(given) == found


def test_sentences() -> None:
    with override_settings(MCP={"STATE_KEYS": ["secret"], "AROUND": ["a.b"]}):
        first, second = check_settings(None)
    assert first.msg == "'a.b' cannot be imported: No module named 'a'"
    assert second.msg == (
        'Key 0 of MCP["STATE_KEYS"] has 6 characters; it needs at least 32.'
    )


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


@pytest.fixture
def unsafe() -> Iterator[None]:
    with override_settings(ALLOWED_HOSTS=["*"], MCP={"TREADS": 1}):
        yield


@pytest.mark.usefixtures("unsafe")
def test_the_command_runs_them_by_their_tag(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", tags=[TAG])
    assert "Did you mean 'THREADS'?" in capsys.readouterr().err
    with pytest.raises(SystemCheckError, match=r"mcp_app\.E005"):
        call_command("check", tags=[TAG], deploy=True)


def test_they_are_registered_under_our_tag() -> None:
    assert checks.tag_exists(TAG, include_deployment_checks=True)


@pytest.mark.parametrize(
    ("permission", "found"),
    [
        ("", []),
        ("mcp_app.view_tool", []),
        ("mcp_app.view_nothing", ["mcp_app.W003"]),
        ("shop.view_order", ["mcp_app.W003"]),
    ],
)
def test_permissions_that_code_asks_for(
    permission: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()

    @registry.tool(permission=permission)
    def guarded() -> str:
        return "done"

    monkeypatch.setattr(checks_of_app, "mcp", registry)
    warnings = checks_of_app.check_permissions(None)
    assert [each.id for each in warnings] == found
    assert all("'guarded'" in each.msg and permission in each.msg for each in warnings)
