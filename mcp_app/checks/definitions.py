"""What lint finds in definitions, with what a developer or staff can do about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, router, transaction
from django.utils import translation

from mcp_app import conf
from mcp_app.catalog.lint import RULES, Level
from mcp_app.catalog.registry import mcp
from mcp_app.checks.advice import advising
from mcp_app.interface.definitions import (
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds import survey
from mcp_app.kinds.survey import SurveyFinding
from mcp_app.models import Server

PER_RULE = 5
"""Messages of one rule; the last one counts the others."""

_SERIOUSNESS: Mapping[Level, tuple[str, Callable[..., checks.CheckMessage]]] = {
    Level.MUST_FIX: ("W", checks.Warning),
    Level.ADVICE: ("I", checks.Info),
}
_NOUNS: Mapping[type, str] = {
    ServerDefinition: "server",
    ToolDefinition: "tool",
    ResourceDefinition: "resource",
    ResourceTemplateDefinition: "resource template",
    PromptDefinition: "prompt",
}
_IN_CODE = {
    "hidden-character": "Write the text again, without the character.",
    "description-missing": "Write a docstring, or description=….",
    "changes-unsaid": "Set read_only=True, or read_only=False and destructive=….",
    "deleting-unsaid": "Set destructive=True or destructive=False.",
    "parameter-description-missing": "Describe them under “Args:” in the docstring, or"
    " with Annotated[…, Field(description=…)].",
    "argument-description-missing": "Describe them under “Args:” in the docstring, or"
    " with Annotated[…, Field(description=…)].",
    "parameter-type-missing": "Annotate the parameter.",
    "media-type-missing": "Set mime_type=….",
    "name-refused": "Give the decorator another name.",
}
"""What a developer writes, by rule."""


@advising
def check_definitions(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report what lint finds in code."""
    if not _is_configured():
        return []
    # Checks speak English, and lint is translated.
    with translation.override(None):
        return _counted(survey.code_findings(mcp))


@advising
def check_rows(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[checks.CheckMessage]:
    """Report what lint finds in rows, if `--database` names their database.

    Without that option `check` makes no statement, as Django's own checks do, so that
    it runs without a database, too.
    """
    alias = router.db_for_read(Server)
    if alias not in (databases or ()) or not _is_configured():
        return []
    with translation.override(None):
        return _stored(alias)


def _is_configured() -> bool:
    """Whether lint can read its limits; `check_settings` reports it if not."""
    try:
        return not conf.problems(conf.current())
    except ImproperlyConfigured:
        return False


def _stored(alias: str) -> list[checks.CheckMessage]:
    try:
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=alias):
            tables = connections[alias].introspection.table_names()
            # `migrate` runs the checks before it makes our tables.
            there = Server._meta.db_table in tables
            return _counted(survey.row_findings(mcp)) if there else []
    except Error as error:
        message = f"The definitions made in the admin could not be checked: {error}"
        hint = "After an update of the app, run manage.py migrate."
        return [checks.Info(message, hint=hint, id="mcp_app.I002")]


def _counted(found: Iterable[SurveyFinding]) -> list[checks.CheckMessage]:
    """Return messages, of each rule the first ones and how many more there are."""
    groups: defaultdict[tuple[Level, str], list[SurveyFinding]] = defaultdict(list)
    for each in found:
        groups[each.finding.level, each.finding.rule].append(each)
    return [
        _message(each, len(group) - PER_RULE if place == PER_RULE else 0)
        for group in groups.values()
        # The command sorts, too: the last one counts the others.
        for place, each in enumerate(sorted(group, key=_sentence)[:PER_RULE], 1)
    ]


def _message(each: SurveyFinding, more: int) -> checks.CheckMessage:
    rule, level = each.finding.rule, each.finding.level
    letter, kind = _SERIOUSNESS[level]
    others = f" And {more} more of this kind." if more else ""
    return kind(
        _sentence(each) + others,
        hint=_IN_CODE.get(rule) if each.in_code else None,
        id=f"mcp_app.{letter}{RULES[rule]}",
    )


def _sentence(each: SurveyFinding) -> str:
    noun = _NOUNS[type(each.about)]
    name = (
        each.about.slug if isinstance(each.about, ServerDefinition) else each.about.name
    )
    column = f", {each.finding.field}" if each.finding.field else ""
    where = f"The {noun} “{visible(name)}” ({each.source}){column}"
    return f"{where}: {each.finding.message}"
