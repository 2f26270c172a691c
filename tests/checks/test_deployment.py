from __future__ import annotations

from typing import Any

import pytest
from channels.layers import channel_layers
from django.core import checks
from django.test import override_settings

from mcp_app.checks.deployment import check_deployment


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
    assert 'PUBLIC_URL"] to the address that clients use, such as' in str(error.hint)


WWW = {"PUBLIC_URL": "https://www.example.org/mcp"}


@pytest.mark.parametrize(
    ("site", "given", "found"),
    [
        ({"SECURE_SSL_REDIRECT": True}, {}, ["SECURE_SSL_REDIRECT"]),
        ({"SECURE_SSL_REDIRECT": True}, WWW, []),
        (
            {"SECURE_SSL_REDIRECT": True},
            {"PUBLIC_URL": "http://example.org/mcp"},
            ["SECURE_SSL_REDIRECT"],
        ),
        ({"PREPEND_WWW": True}, {}, ["PREPEND_WWW"]),
        ({"PREPEND_WWW": True}, WWW, []),
        (
            {"PREPEND_WWW": True},
            {"PUBLIC_URL": "https://example.org/mcp"},
            ["PREPEND_WWW"],
        ),
    ],
)
def test_redirects(
    site: dict[str, Any], given: dict[str, Any], found: list[str]
) -> None:
    with override_settings(ALLOWED_HOSTS=["example.org"], MCP=given, **site):
        told = [each for each in check_deployment(None) if each.id == "mcp_app.W018"]
    assert [each.msg.partition(" ")[0] for each in told] == found


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
