"""What environment variables become in `settings.MCP`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

import mcp_app
from mcp_app.conf import KEYS
from mcp_project.environment import READERS, mcp_settings


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("PUBLIC_URL", "https://a.example/mcp", "https://a.example/mcp"),
        ("HOSTS", "a.example, b.example", ["a.example", "b.example"]),
        ("ORIGINS", "", []),
        ("AUTHENTICATION", '{"site": "shop.mcp.who"}', {"site": "shop.mcp.who"}),
        ("THREADS", "16", 16),
        ("LIMITS", "off", "off"),
        ("LIMITS", '{"body": 1024}', {"body": 1024}),
        ("AUDIT", "off", "off"),
        ("COERCE", "False", False),
        ("COERCE", "on", True),
        ("ENDLESS_TOKENS", "yes", True),
        ("TRUSTED_PROXIES", "2", 2),
        ("TRUSTED_PROXIES", "10.0.0.0/8,::1", ["10.0.0.0/8", "::1"]),
        ("THREDS", "16", "16"),
    ],
)
def test_each_key_is_read_by_its_own_rule(key: str, text: str, value: object) -> None:
    assert mcp_settings({f"MCP_{key}": text}) == {key: value}


def test_other_variables_are_left_out() -> None:
    assert mcp_settings({"PATH": "/bin", "XMCP_THREADS": "1"}) == {}


def test_what_a_command_reads_is_no_setting() -> None:
    commands = Path(mcp_app.__file__).parent.glob("management/**/*.py")
    text = "".join(each.read_text("utf-8") for each in commands)
    names = re.findall(r'environ\.get\("(MCP_\w+)"', text)
    assert {"MCP_TOKEN", "MCP_USER"} <= {*names}
    assert mcp_settings(dict.fromkeys(names, "eve")) == {}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("THREADS", "many"),
        ("LIMITS", "none"),
        ("AUTHENTICATION", "[]"),
        ("COERCE", "maybe"),
    ],
)
def test_an_unreadable_value_names_the_variable(key: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"MCP_{key} has the value"):
        mcp_settings({f"MCP_{key}": text})


def test_no_message_shows_a_secret() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        mcp_settings({"MCP_HTTP": '{"a": {"secret_headers": "canary"'})
    assert str(caught.value).startswith("The environment variable MCP_HTTP has a value")
    assert "canary" not in str(caught.value)


def test_every_reader_is_of_a_setting() -> None:
    assert READERS.keys() <= set(KEYS)
