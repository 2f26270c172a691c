"""All kinds by their keys: ours, and those of `MCP["KINDS"]`.

A kind that cannot be used is left out, and so are its rows; others are not affected.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.functional import Promise
from django.utils.module_loading import import_string

from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import (
    EventDefinition,
    Label,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.errors import with_remedy
from mcp_app.interface.rules import visible
from mcp_app.kinds.kind import Kind
from mcp_app.protocol import schemas

OURS: Final = {
    "text": "mcp_app.kinds.text.TextKind",
    "function": "mcp_app.kinds.function.FunctionKind",
    "query": "mcp_app.kinds.query.kind.QueryKind",
    "http": "mcp_app.kinds.http.kind.HttpKind",
    "upstream": "mcp_app.kinds.upstream.kind.UpstreamKind",
    "skill": "mcp_app.kinds.skill.SkillKind",
    "change": "mcp_app.kinds.query.changes.ChangeKind",
}
DEFINITIONS: Final = frozenset(
    {
        ToolDefinition,
        ResourceDefinition,
        ResourceTemplateDefinition,
        PromptDefinition,
        EventDefinition,
    }
)
KIND_KEY: Final = re.compile(r"[a-z][a-z0-9_]{0,15}")
"""The column of the key in rows has sixteen characters."""

logger = logging.getLogger("mcp_app.kinds")


class UnusableKind(ImproperlyConfigured):
    """A kind in the settings cannot be used; the message names it."""


@cache
def kind_classes() -> Mapping[str, type[Kind]]:
    """Return the usable kinds by their keys; ours come first."""
    classes, problems = _load_kinds()
    for problem in problems:
        logger.error("%s", problem)
    return classes


def name_of_kind(key: str) -> Label:
    """Return what people call a kind; its key if the kind is gone."""
    kind = kind_classes().get(key)
    return visible(key) if kind is None else kind.name


def no_such_kind(key: str) -> str:
    """Return the message for a key that no kind has."""
    return f"There is no kind “{visible(key)}”."


def is_guarded(key: str) -> bool:
    """Whether staff need a right to change configs of a kind; True if it is gone."""
    kind = kind_classes().get(key)
    return kind is None or kind.guarded


def unusable_kinds() -> list[str]:
    """Return a sentence for each entry of `MCP["KINDS"]` that cannot be used."""
    return _load_kinds()[1]


def _load_kinds() -> tuple[Mapping[str, type[Kind]], list[str]]:
    entries, kinds = [*OURS.items()], mcp_settings.kinds
    # If the setting is no dict, the system check reports it.
    if isinstance(kinds, Mapping):
        entries += [(str(key), path) for key, path in kinds.items()]
    classes: dict[str, type[Kind]] = {}
    problems: list[str] = []
    for key, path in entries:
        try:
            classes[key] = _usable_kind(key, path, classes)
        except UnusableKind as error:
            problems.append(str(error))
    return classes, problems


def _usable_kind(key: str, path: str, kinds: Mapping[str, type[Kind]]) -> type[Kind]:
    entry = f'MCP["KINDS"][{key!r}]'
    if key in kinds:
        used_by = f"{kinds[key].__module__}.{kinds[key].__qualname__}"
        raise UnusableKind(
            f"{entry} registers {path!r} under the key “{key}”, but {used_by} already"
            " uses this key. Choose another key."
        )
    if not KIND_KEY.fullmatch(key):
        raise UnusableKind(
            f"{entry} has the key {key!r}. A key must begin with a letter and have at"
            " most 16 characters of a-z, 0-9 and _."
        )
    kind = _import_kind(entry, path)
    for other, other_kind in kinds.items():
        if kind is other_kind:
            raise UnusableKind(
                f"{entry} is {path!r}, which is registered as “{other}” already."
            )
    for problem in _member_problems(kind):
        raise UnusableKind(f"{entry} is {path!r}, {problem}")
    for form in kind.forms.values() if key not in OURS else ():
        if not _has_module(form):
            raise UnusableKind(
                f"{entry}: {path!r} names the form {form!r}, which cannot be imported."
            )
    return kind


def _import_kind(entry: str, path: str) -> type[Kind]:
    try:
        kind = import_string(path)
    except Exception as error:
        # A module may raise any exception when it is imported.
        sentence = f"{entry} is {path!r}, which cannot be imported: {error}"
        raise UnusableKind(with_remedy(sentence, error)) from error
    if not isinstance(kind, type) or not issubclass(kind, Kind):
        raise UnusableKind(f"{entry} is {path!r}: it must be a subclass of Kind.")
    return kind


def _member_problems(kind: type[Kind]) -> Iterator[str]:
    examples = getattr(kind, "examples", None)
    if not isinstance(getattr(kind, "name", None), str | Promise) or not kind.name:
        yield "which has no `name`."
    if not examples or not _by_definition(examples):
        yield "whose `examples` must be a dict of texts by definition."
    if not _by_definition(kind.forms) or not all(
        isinstance(form, str) for form in kind.forms.values()
    ):
        yield "whose `forms` must be a dict of dotted paths by definition."
    try:
        schemas.compile_schema(kind.schema)
    except Exception as error:
        yield f"whose `schema` is not a JSON Schema: {error}"


def _by_definition(value: object) -> bool:
    return isinstance(value, Mapping) and value.keys() <= DEFINITIONS


def _has_module(path: str) -> bool:
    """Whether the module of a form may exist; only the admin imports it."""
    try:
        return find_spec(path.rpartition(".")[0]) is not None
    except ModuleNotFoundError:
        return False
    except Exception:
        # `find_spec` imports the parent packages, which may need the admin.
        return True


@receiver(setting_changed)
def _forget_kinds(*, setting: str, **_: object) -> None:
    if setting == "MCP":
        kind_classes.cache_clear()
