"""Sites name few modules, and short ones: what is deeper may move."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from mcp_app import authentication, conf, kind_forms, logs
from mcp_app.auth.authenticators import django_session
from mcp_app.auth.token_cache import access_token
from tests.apart import ROOT

PUBLIC = {
    *("account_urls", "admin", "asgi", "authentication", "kind_forms", "kinds", "logs"),
    *("metrics", "models", "oauth_urls", "signals", "tasks", "test", "urls", "wsgi"),
    *("api_urls", "discovery_urls"),
}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def paths(text: str) -> set[tuple[str, str]]:
    return {
        (module, rest)
        for module, rest in re.findall(r"\bmcp_app\.([a-z_]+)((?:\.\w+)*)", text)
        if (ROOT / "mcp_app" / module).is_dir()
        or (ROOT / f"mcp_app/{module}.py").exists()
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_name_no_deeper_module(page: Path) -> None:
    named = paths(page.read_text("utf-8"))
    assert {module for module, _ in named} <= PUBLIC
    assert all(rest.count(".") <= 1 for _, rest in named), named


def test_defaults_and_our_project_name_no_deeper_module() -> None:
    project = (ROOT / "mcp_project/settings.py").read_text("utf-8")
    named = paths(f"{conf.McpSettings()} {project}")
    assert {module for module, _ in named} <= PUBLIC
    assert ("authentication", ".access_token") in named


@pytest.mark.parametrize("module", [authentication, kind_forms, logs])
def test_what_they_offer_is_there(module: ModuleType) -> None:
    assert module.__all__ == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_paths_of_settings_name_what_is_deeper() -> None:
    assert authentication.access_token is access_token
    assert authentication.django_session is django_session
