"""Imports the modules in which apps declare things, and records failed imports."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from django.apps import AppConfig
from django.utils.module_loading import module_has_submodule

from mcp_app.catalog.callables import layers_of
from mcp_app.catalog.findings import Place, collecting, record_problem
from mcp_app.catalog.registered_function import (
    Declaration,
    ReadyFunction,
    RegisteredFunction,
)
from mcp_app.catalog.registry import Registry
from mcp_app.interface.rules import visible
from mcp_app.protocol import jsonrpc

MAX_TEXT_LENGTH: Final = 500
"""Characters of an exception's text that are kept."""
_IMPORTING: Final = frozenset(
    [__name__, "importlib", "importlib._bootstrap", "importlib._bootstrap_external"]
)
"""Modules that only import other modules."""


def import_modules(registry: Registry, configs: Iterable[AppConfig], name: str) -> None:
    """Import the module of this name from each app that has one.

    The registry records a failed import as a problem; earlier declarations stay.
    """
    with collecting(registry.problems):
        for config in configs:
            package = config.module
            if package is None:
                continue
            path = f"{package.__name__}.{name}"
            try:
                import_module(path)
            except Exception as error:
                if _has_submodule(package, name):
                    file = Path(package.__path__[0], *name.split("."))
                    failure = _import_failure(path, file.with_suffix(".py"), error)
                    record_problem(registry.problems, *failure)


def _has_submodule(package: ModuleType, name: str) -> bool:
    try:
        return module_has_submodule(package, name)
    except Exception:
        # The parent package of a dotted name cannot be imported either.
        return True


def _import_failure(path: str, file: Path, error: Exception) -> tuple[Place, str]:
    """Return the line of the module at which its import failed, and a sentence."""
    passages = [
        (Place(frame.f_code.co_filename, line), module)
        for frame, line in traceback.walk_tb(error.__traceback__)
        for module in [str(frame.f_globals.get("__name__"))]
        if module not in _IMPORTING
    ]
    if isinstance(error, SyntaxError) and error.filename:
        passages.append((Place(error.filename, error.lineno or 1), ""))
    deepest, _module = passages[-1] if passages else (Place(str(file), 1), path)
    inside = [place for place, module in passages if module == path]
    place = inside[0] if inside else deepest
    raised_at = "" if deepest == place else f" (raised at {deepest})"
    served = (
        "Only what is declared above this line is served."
        if inside
        else "Nothing of this module is served."
    )
    sentence = f"the module {path} stops with {_error_text(error)}{raised_at}."
    return place, f"{sentence} {_repair_advice(error)} {served}"


def _error_text(error: Exception) -> str:
    try:
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        text = visible(text, MAX_TEXT_LENGTH)
    except Exception:
        # An exception of a site may fail to give its text.
        text = ""
    kind = type(error).__name__
    return f"{kind}: {text.rstrip('.')}" if text else kind


def _repair_advice(error: Exception) -> str:
    if isinstance(error, ImportError):
        if "partially initialized" in str(error):
            return "Import it inside the function that uses it."
        return "Correct the import, or install what it names."
    if isinstance(error, NameError):
        return "Import the name, or define it above this line."
    return "Correct this line."


# -- fingerprint -----------------------------------------------------------------------
# The digest of what code declares: if two processes differ, their code differs.


def fingerprint(registry: Registry) -> str:
    """Return the digest of all that code declares, and of the functions behind it.

    Functions that these functions call are not in the digest.
    """
    lines: list[object] = []
    # `registry.tools` makes the tools of toolsets; `vars` has only those made so far.
    for name, declared in {**vars(registry), "declared_tools": registry.tools}.items():
        for key, each in declared.items():
            if isinstance(each, Declaration):
                definition = _comparable_value(each.definition)
                lines.append([name, key, definition, _function_code(each.function)])
            elif isinstance(each, RegisteredFunction):
                lines.append([name, _comparable_value(key), _function_code(each)])
    return sha256(jsonrpc.canonical(sorted(lines, key=str))).hexdigest()


def _function_code(function: RegisteredFunction | ReadyFunction) -> object:
    if isinstance(function, ReadyFunction):
        skill = function.run.skill
        entry = None if skill is None else skill.entry
        return [function.qualified_name, _comparable_value(entry)]
    codes = [getattr(each, "__code__", None) for each in layers_of(function.function)]
    return [function.qualified_name, *map(_comparable_value, codes)]


def _comparable_value(value: Any) -> object:
    """Return a form of a value that is equal in all processes with the same code."""
    if isinstance(value, str | int | float | None):
        return repr(value)
    if isinstance(value, Mapping | set | frozenset):
        parts = value.items() if isinstance(value, Mapping) else value
        return sorted(map(_comparable_value, parts), key=str)
    members: Iterable[object] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, CodeType):
        members = value.co_code.hex(), value.co_names, value.co_consts
    elif is_dataclass(value) and not isinstance(value, type):
        members = [getattr(value, each.name) for each in fields(value)]
    # Any other value is compared by its type alone.
    return [type(value).__qualname__, *map(_comparable_value, members)]
