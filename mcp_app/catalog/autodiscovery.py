"""Imports the modules in which apps declare, and keeps what stops one of them."""

from __future__ import annotations

import traceback
from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from mcp_app.catalog.problems import Place, collecting, record
from mcp_app.catalog.registry import Registry


def import_modules(registry: Registry, name: str) -> None:
    """Import the module of this name from each installed app that has one.

    One that fails is a problem of the registry; what it declared before stays.
    """
    with collecting(registry):
        for app in apps.get_app_configs():
            _import(registry, app.module, name)


def _import(registry: Registry, package: ModuleType | None, name: str) -> None:
    if package is None:
        return
    path = f"{package.__name__}.{name}"
    try:
        import_module(path)
    except Exception as error:
        if isinstance(error, SyntaxError) or _is_there(package, name):
            record(registry, *_failure(path, error))


def _is_there(package: ModuleType, name: str) -> bool:
    try:
        return module_has_submodule(package, name)
    except Exception:
        # The package around a dotted name stops, too.
        return True


def _failure(path: str, error: Exception) -> tuple[Place, str]:
    """Return where the body of a module stops, and a sentence on why."""
    raised = _raised_at(error)
    place = next((each for each, module in raised if module == path), raised[-1][0])
    deepest = raised[-1][0]
    kind = type(error).__name__
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    beyond = "" if deepest == place else f" (raised at {deepest})"
    served = "No definition of this module is served."
    if not isinstance(error, SyntaxError) or deepest != place:
        served = "Only definitions above this line are served."
    said = f"the module {path} stops with {kind}: {text.rstrip('.')}{beyond}."
    return place, f"{said} {_advice(error)} {served}"


def _raised_at(error: Exception) -> list[tuple[Place, str]]:
    """Return the lines that an exception passed, outermost first, and their modules."""
    passed = [
        (Place(frame.f_code.co_filename, line), str(frame.f_globals.get("__name__")))
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<frozen importlib")
    ]
    if isinstance(error, SyntaxError) and error.filename:
        passed.append((Place(error.filename, error.lineno or 1), ""))
    return passed


def _advice(error: Exception) -> str:
    if isinstance(error, ImportError):
        if "partially initialized" in str(error):
            return "Import it inside the function that uses it."
        return "Correct the import, or install what it names."
    if isinstance(error, NameError):
        return "Import the name, or define it above this line."
    return "Correct this line."
