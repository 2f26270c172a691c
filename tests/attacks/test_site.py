"""Sites with unusual settings, wrong ones, and prefixes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.handlers.asgi import ASGIHandler
from django.test import override_settings
from django.urls import get_script_prefix, set_script_prefix

import mcp_app.asgi
import tests.drill
from mcp_app.asgi import Switch
from mcp_app.catalog.registry import mcp
from mcp_app.checks.deployment import check_deployment
from mcp_app.checks.settings import check_settings


def sentences(given: Any) -> list[str]:
    with override_settings(MCP=given):
        return [each.msg for each in check_settings(None)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"PUBLIC_URL": "example.com"}, ["'example.com', which can match no request"]),
        ({"ORIGINS": ["example.com"]}, ["'example.com', which can match no request"]),
        ({"ORIGINS": ["https://a.com/"]}, ["'https://a.com/', which can match"]),
        ({"HOSTS": ["https://a.com"]}, ["'https://a.com', which can match no"]),
        ({"HOSTS": ["a.com:80"]}, ["'a.com:80', which can match no"]),
        ({"AUTHENTICATION": {"public": "builtins.len"}}, ["which no server can"]),
        ({"AUTHENTICATION": {"a b": "builtins.len"}}, ["which no server can choose"]),
        ({"AUTHENTICATION": {"a": "tests.settings"}}, ["is not callable"]),
        ({"CALL_CONTEXT_MANAGERS": ["django.conf.settings"]}, ["is not callable"]),
        ({"LIMITS": {"tool_timeout": float("nan")}}, ["is nan: Input should be"]),
        ({5: 1}, ["MCP[5] is not a setting."]),
        (
            {
                "PUBLIC_URL": "https://a.com:8000/mcp",
                "ORIGINS": ["http://localhost:3000", "https://[::1]"],
                "HOSTS": ["a.com", ".a.com", "[::1]", "127.0.0.1"],
                "AUTHENTICATION": {"a": "builtins.len"},
            },
            [],
        ),
    ],
)
def test_settings_that_can_never_work_are_told(given: Any, said: list[str]) -> None:
    found = sentences(given)
    assert len(found) == len(said)
    assert all(part in sentence for part, sentence in zip(said, found, strict=True))


@pytest.mark.parametrize("given", [5, {"LIMITS": {"bdy": 1}}, {"AUTODISCOVER": 5}])
def test_wrong_settings_keep_no_site_from_starting(given: Any) -> None:
    with override_settings(MCP=given):
        apps.get_app_config("mcp_app").ready()
        assert check_settings(None)
        check_deployment(None)


@override_settings(MCP={"AUTODISCOVER": "lacks_a_setting"})
def test_wrong_code_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = (
        "from django.core.exceptions import ImproperlyConfigured as E\nraise E('key')"
    )
    (tmp_path / "lacks_a_setting.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(tests.drill, "__path__", [*tests.drill.__path__, str(tmp_path)])
    with monkeypatch.context() as patched:
        patched.setattr(mcp, "problems", {})
        apps.get_app_config("mcp_app").ready()
        (problem,) = mcp.problems
    assert "lacks_a_setting stops with ImproperlyConfigured: key" in problem


@pytest.mark.parametrize("prefix", ["/", "/site/"])
@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/mcp", "default"),
        ("/site/mcp", "default"),
        ("/site/mcp/shop", "shop"),
        ("/sitemcp", None),
        ("/site/site/mcp", None),
    ],
)
@override_settings(FORCE_SCRIPT_NAME="/site")
def test_the_prefix_of_a_site(prefix: str, path: str, slug: str | None) -> None:
    before = get_script_prefix()
    # `manage.py` sets it, an ASGI server does not.
    set_script_prefix(prefix)
    try:
        switch = mcp_app.asgi.application(ASGIHandler())
        assert isinstance(switch, Switch)
        place = switch.find_place("", path)
        assert place == (slug and (slug, ""))
    finally:
        set_script_prefix(before)
