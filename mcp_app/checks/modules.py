"""Whether what `mcp.py` declares is served, and staff have the pages to manage it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.urls import NoReverseMatch, reverse

from mcp_app import conf
from mcp_app.catalog.lint import registry_problems, trial_problems
from mcp_app.catalog.registry import mcp
from mcp_app.checks.settings import Messages
from mcp_app.interface.server import OWN_TOOLS

OURS: Final = b"mcp_app"
"""What modules with definitions import; without it, a module is not ours."""
LIBRARIES: Final = frozenset(["site-packages", "dist-packages"])
"""Folders that are not the site's, even if they are in its folder."""
SETUP_COMMANDS: Final = (["makemigrations"], ["migrate"], ["createsuperuser"])
"""What a site needs before its toolsets can read rows: a problem does not stop them."""
MAX_FOLDERS: Final = 200
"""Folders beside apps in which a module is looked for."""


def check_modules(app_configs: object, **_: Any) -> Messages:
    """Report definitions that are not served, and modules that nobody imports."""
    problems = [*registry_problems(mcp), *trial_problems(mcp)]
    broken = (checks.Error(problem, id="mcp_app.E012") for problem in problems)
    try:
        name = str(conf.current_settings().autodiscover)
    except ImproperlyConfigured:
        # `check_settings` reports it.
        return [*broken]
    return [*broken, *_of_no_app(name)]


def check_toolsets(app_configs: object, **_: Any) -> Messages:
    """Report what toolsets cannot make, and names of tools that are ours."""
    # The registry makes its tools when it is asked for them.
    if not (mcp.tools or mcp.toolsets):
        return []
    kind = checks.Warning if sys.argv[1:2] in SETUP_COMMANDS else checks.Error
    errors = (kind(problem, id="mcp_app.E022") for problem in mcp.toolset_problems)
    remarks = (checks.Info(remark, id="mcp_app.I004") for remark in mcp.toolset_remarks)
    clashes = [
        checks.Warning(
            f"The tool {name!r} of this site is called as one of mcp_app's own.",
            hint="Give it another name.",
            id="mcp_app.W029",
        )
        for name in OWN_TOOLS
        if name in mcp.tools
    ]
    return [*errors, *remarks, *clashes]


def check_admin_site(app_configs: object, **_: Any) -> Messages:
    """Warn of an `AdminSite` of the site's own without our pages."""
    has_admin = getattr(settings, "ROOT_URLCONF", "") and _has_admin_page("index")
    if not has_admin or _has_admin_page("mcp_app_tool_changelist"):
        return []
    message = "The admin in the URLs of this site has no pages of mcp_app for staff."
    hint = "Call mcp_app.admin.register(site) where your AdminSite is made."
    return [checks.Warning(message, hint=hint, id="mcp_app.W026")]


def _has_admin_page(name: str) -> bool:
    try:
        return bool(reverse(f"admin:{name}"))
    except NoReverseMatch:
        return False


def _of_no_app(name: str) -> Iterator[checks.CheckMessage]:
    """Yield a warning for each module of this name that nothing imports."""
    relative_path = Path(*name.split(".")).with_suffix(".py")
    paths = {str(Path(app.path, relative_path)) for app in apps.get_app_configs()}
    paths |= {str(getattr(each, "__file__", "")) for each in [*sys.modules.values()]}
    for folder, dotted in sorted(_candidate_folders().items()):
        path = folder / relative_path
        if str(path) not in paths and _has_definitions(path):
            message = (
                f"{path} is not imported, because its package is in no installed app."
            )
            hint = f'Add "{dotted}" to INSTALLED_APPS.'
            if not dotted:
                hint = "Move it into the package of an app in INSTALLED_APPS."
            yield checks.Warning(message, hint=hint, id="mcp_app.W022")


def _has_definitions(path: Path) -> bool:
    try:
        return OURS in path.read_bytes()
    except OSError:
        return False


def _candidate_folders() -> dict[Path, str]:
    """Return folders in which such a module may be, with their dotted names."""
    base = getattr(settings, "BASE_DIR", None)
    of_urlconf = dict(_of_urlconf())
    packages = [(Path(app.path), app.name) for app in apps.get_app_configs()]
    above = {
        folder: dotted
        for package in (*packages, *of_urlconf.items())
        for folder, dotted in (_folders_above(*package, Path(base)) if base else ())
    }
    beside = {
        folder / name: f"{dotted}.{name}" if dotted else name
        for folder, dotted in above.items()
        for name in _names_inside(folder)
    }
    return {**of_urlconf, **beside, **above}


def _of_urlconf() -> Iterator[tuple[Path, str]]:
    """Yield the folders and the name of the package with the root URLconf."""
    package = str(getattr(settings, "ROOT_URLCONF", "")).rpartition(".")[0]
    try:
        spec = find_spec(package) if package else None
    except (ImportError, ValueError):
        return
    for folder in (spec and spec.submodule_search_locations) or ():
        yield Path(folder), package


def _folders_above(folder: Path, dotted: str, base: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders above a package up to the site's, with their dotted names."""
    if LIBRARIES & {*folder.parts}:
        return
    while base in folder.parents and folder.name == dotted.rpartition(".")[2]:
        folder, dotted = folder.parent, dotted.rpartition(".")[0]
        yield folder, dotted


def _names_inside(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return sorted(filter(str.isidentifier, names))[:MAX_FOLDERS]
