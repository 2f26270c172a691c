from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django import forms
from django.apps import AppConfig, apps
from django.contrib.admin import AdminSite
from django.contrib.auth.models import User
from django.test import override_settings
from django.urls import path

from mcp_app.admin import register
from mcp_app.catalog.findings import Place, record_problem
from mcp_app.catalog.registry import Registry
from mcp_app.checks import modules
from mcp_app.checks.modules import check_admin_site, check_modules

DECLARING = "from mcp_app import mcp\n\nraise RuntimeError('It was imported.')\n"

FILES = (
    "unlisted_site/__init__.py",
    "unlisted_site/shop/__init__.py",
    "unlisted_site/shop/api/__init__.py",
    "unlisted_config/__init__.py",
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    config = AppConfig("unlisted_site.shop", import_module("unlisted_site.shop"))
    monkeypatch.setitem(apps.app_configs, "unlisted_shop", config)
    with override_settings(BASE_DIR=tmp_path, ROOT_URLCONF="unlisted_config.urls"):
        yield tmp_path
    for name in [name for name in sys.modules if name.startswith("unlisted_")]:
        del sys.modules[name]


def declare(site: Path, name: str) -> Path:
    path = site / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(DECLARING)
    return path


def found(**settings: Any) -> list[tuple[str, str]]:
    with override_settings(**settings):
        told = [each for each in check_modules(None) if each.id == "mcp_app.W022"]
    return [(each.msg.partition(" ")[0], str(each.hint)) for each in told]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("unlisted_config/mcp.py", "unlisted_config"),
        ("beside/mcp.py", "beside"),
        ("unlisted_site/mcp.py", "unlisted_site"),
        ("unlisted_site/orders/mcp.py", "unlisted_site.orders"),
    ],
)
def test_a_module_of_no_app(site: Path, name: str, line: str) -> None:
    path = declare(site, name)
    assert found() == [(str(path), f'Add "{line}" to INSTALLED_APPS.')]


def test_the_only_app_of_a_site(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(apps.app_configs, "unlisted_shop")
    path = declare(site, "beside/mcp.py")
    assert found() == [(str(path), 'Add "beside" to INSTALLED_APPS.')]


def test_a_module_beside_manage_py(site: Path) -> None:
    path = declare(site, "mcp.py")
    said = "Move it into the package of an app in INSTALLED_APPS."
    assert found() == [(str(path), said)]


def test_without_base_dir(site: Path) -> None:
    declare(site, "beside/mcp.py")
    path = declare(site, "unlisted_config/mcp.py")
    assert [each for each, _ in found(BASE_DIR=None)] == [str(path)]
    assert found(BASE_DIR=None, ROOT_URLCONF="no_such_package.urls") == []
    assert found(BASE_DIR=None, ROOT_URLCONF="urls") == []
    assert found(BASE_DIR=str(site / "elsewhere"), ROOT_URLCONF="urls") == []


def test_modules_that_are_found(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(site, "unlisted_site/shop/mcp.py")
    (site / "beside").mkdir()
    (site / "beside/mcp.py").write_text("from elsewhere import FastServer\n")
    assert found() == []
    # Somebody imported it by hand.
    path = declare(site, "unlisted_site/mcp.py")
    assert found()
    module = ModuleType("unlisted_site.mcp")
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, "unlisted_site.mcp", module)
    assert found() == []


def test_an_app_by_its_config(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class BesideConfig(AppConfig):
        name = "beside"
        path = str(site / "beside")

    path = declare(site, "beside/mcp.py")
    assert found()
    config = BesideConfig("beside", ModuleType("beside"))
    monkeypatch.setitem(apps.app_configs, "beside", config)
    assert found() == []
    assert path.exists()


def test_another_name(site: Path) -> None:
    declare(site, "beside/mcp.py")
    path = declare(site, "beside/tools.py")
    (site / "unlisted_site/api").mkdir()
    deeper = declare(site, "unlisted_site/api/tools.py")
    assert [each for each, _ in found(MCP={"AUTODISCOVER": "tools"})] == [
        str(path),
        str(deeper),
    ]
    deepest = found(MCP={"AUTODISCOVER": "api.tools"})
    assert deepest == [(str(deeper), 'Add "unlisted_site" to INSTALLED_APPS.')]


def test_libraries_are_not_searched(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = site / ".venv/site-packages"
    (folder / "library").mkdir(parents=True)
    (folder / "other").mkdir()
    (folder / "other/mcp.py").write_text(DECLARING)

    class LibraryConfig(AppConfig):
        path = str(folder / "library")

    config = LibraryConfig("library", ModuleType("library"))
    monkeypatch.setitem(apps.app_configs, "library", config)
    assert found() == []


def test_few_folders_are_searched(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "MAX_FOLDERS", 2)
    for name in ("a", "b", "c"):
        declare(site, f"{name}/mcp.py")
    assert [hint for _, hint in found()] == [
        'Add "a" to INSTALLED_APPS.',
        'Add "b" to INSTALLED_APPS.',
    ]


def test_broken_definitions_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    for line, name in ((12, "a"), (2, "b")):
        place = Place("/site/shop/mcp.py", line)
        record_problem(registry.problems, place, f"shop.mcp.{name}: it is wrong.")
    monkeypatch.setattr(modules, "mcp", registry)
    for mcp in ({}, {"LIMITS": "of"}):
        with override_settings(MCP=mcp):
            told = check_modules(None)
        assert [(each.id, each.msg) for each in told] == [
            ("mcp_app.E012", "/site/shop/mcp.py:2: shop.mcp.b: it is wrong."),
            ("mcp_app.E012", "/site/shop/mcp.py:12: shop.mcp.a: it is wrong."),
        ]


class OwnForm(forms.Form):
    def __init__(self, *positional: Any, **named: Any) -> None:
        self.user = named.pop("user")
        super().__init__(*positional, **named)


ROWS: Any = {"__init__": lambda form, data=None: User.objects.get()}
RowForm: Any = type("RowForm", (forms.Form,), ROWS)


def test_a_form_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    monkeypatch.setattr(modules, "mcp", registry)

    @registry.tool
    def enter(form: OwnForm) -> None: ...

    # Rows may not be there yet.
    @registry.tool
    def leave(form: RowForm) -> None: ...

    [problem] = check_modules(None)
    assert (problem.id, __file__ in problem.msg) == ("mcp_app.E012", True)
    assert "enter: the form OwnForm cannot be made of what a" in problem.msg


def test_nothing_is_said_of_this_site() -> None:
    assert check_modules(None) == []


def test_an_admin_site_needs_our_pages() -> None:
    site, urls = AdminSite("backoffice"), ModuleType("urls")

    def told(*patterns: Any) -> list[str | None]:
        vars(urls)["urlpatterns"] = patterns
        with override_settings(ROOT_URLCONF=urls):
            return [each.id for each in check_admin_site(None)]

    assert told() == []
    assert told(path("backoffice/", site.urls)) == ["mcp_app.W026"]
    register(site)
    assert told(path("backoffice/", site.urls)) == []
    assert check_admin_site(None) == []
