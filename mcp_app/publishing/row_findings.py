"""What lint says of the content of rows, and which part is stored with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext as _

from mcp_app.catalog.definition_texts import tokens
from mcp_app.catalog.findings import Finding, Level, must_fix, worst_first
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import (
    MODELS,
    apply_overlay,
    definition_of,
    server_definition,
    uploads_of,
)
from mcp_app.catalog.server_lint import server_findings
from mcp_app.interface.definitions import Definition
from mcp_app.kinds import (
    KindError,
    complete_definition,
    findings_with_kind,
    usable_kinds,
)
from mcp_app.kinds.survey import declarations
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import Source
from mcp_app.protocol.json_types import JsonObject

UNSERVABLE = frozenset(
    {"kind", "taken", "schema-refused", "uri-not-allowed", "hidden-character"}
)
"""Rules that a version must keep to be served, even one published long ago."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What lint says of a content, and its tokens; 0 if they are unknown."""

    findings: Sequence[Finding]
    tokens: int = 0

    @property
    def to_fix(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level is Level.MUST_FIX]

    @property
    def advices(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level is Level.ADVICE]


def judge_row_content(
    row: PublishedRow, content: JsonObject, registry: Registry
) -> Findings:
    """Return what lint says of a row with this content."""
    if not isinstance(row, DefinitionRow) or row.from_code:
        return judge_content(row, content, registry, {})
    judged = judge_content(row, content, registry, uploads_of(content))
    identity = str(content.get(row.IDENTITY, ""))
    rows = row.rows().exclude(pk=row.pk)
    other = rows.filter(published_identity=row.identity_hash(identity)).first()
    conflicts = [] if other is None else [conflict_finding(other, identity)]
    return Findings([*conflicts, *judged.findings], judged.tokens)


def judge_content(
    row: PublishedRow,
    content: JsonObject,
    registry: Registry,
    uploads: Mapping[str, bytes],
) -> Findings:
    """Judge without the database; `uploads` is the uploaded content by digest.

    The names of other rows are not looked at.
    """
    if isinstance(row, Server):
        return Findings(server_findings(server_definition(row, content), []))
    assert isinstance(row, DefinitionRow)  # noqa: S101 - there are no others
    if row.from_code:
        return _judged_overlay(row, content, registry)
    try:
        stored = definition_of((row.kind_of_row, str(row.pk)), content, uploads)
        stored = complete_definition(stored, usable_kinds(registry))
    except (ValueError, KindError) as error:
        return Findings([must_fix("kind", "", str(error))])
    lint_findings = findings_with_kind(
        stored.definition, stored.kind, stored.config, stored.uploads, registry
    )
    return Findings(lint_findings, tokens(stored.definition))


def _judged_overlay(
    row: DefinitionRow, content: JsonObject, registry: Registry
) -> Findings:
    declared = declarations(registry)[row.kind_of_row].get(row.identity)
    if declared is None:
        message = _(
            "%(name)s is no longer in the code. Clients do not see it. Bring the code"
            " back, or delete this definition."
        )
        return Findings([must_fix("kind", "", message % {"name": row.identity})])
    definition: Definition = apply_overlay(declared.definition, content)
    lint_findings = findings_with_kind(definition, registry=registry)
    # A column that the overlay leaves empty can be fixed only in code.
    adjusted = (
        each if each.field in content else each.as_advice() for each in lint_findings
    )
    return Findings(worst_first(adjusted), tokens(definition))


def conflict_finding(other: DefinitionRow, identity: str) -> Finding:
    """Return the finding that another row is published under a name or URI."""
    return must_fix(
        "taken",
        other.IDENTITY,
        _("“%(name)s” is published as %(identity)s already; choose another one.")
        % {"name": other, "identity": identity},
    )


def store_findings(
    row: DefinitionRow, registry: Registry, judged: Findings | None = None
) -> Findings:
    """Store what lint says of the working copy, and why the served version is broken.

    `judged` is what lint says, if the caller knows it.
    """
    if judged is None:
        judged = judge_row_content(row, row.working_content(), registry)
    row.to_fix, row.advices = len(judged.to_fix), len(judged.advices)
    row.tokens = judged.tokens
    row.broken = broken_reason(row, registry, judged)
    columns = ("to_fix", "advices", "tokens", "broken")
    rows = row.rows().filter(pk=row.pk)
    rows.update(**{name: getattr(row, name) for name in columns})
    return judged


def broken_reason(row: DefinitionRow, registry: Registry, working: Findings) -> str:
    """Return why a row cannot be served as it was published, "" if it can."""
    judged = working
    if not row.from_code:
        if row.published is None:
            return ""
        if row.published.hash != row.content_hash:
            judged = judge_row_content(row, row.published.read(), registry)
    return " ".join(each.message for each in judged.to_fix if each.rule in UNSERVABLE)


def store_all_findings(registry: Registry, *, only_code: bool = False) -> int:
    """Store the findings of every row; return how many are broken.  It takes a while.

    With `only_code`, rows that do not depend on code are left out.
    """
    count = 0
    for model in MODELS.values():
        rows: models.QuerySet[Any] = model.rows().select_related("published")
        if only_code:
            rows = rows.filter(models.Q(source=Source.CODE) | ~models.Q(kind="text"))
        for row in rows.order_by("pk").iterator(chunk_size=500):
            store_findings(row, registry)
            count += bool(row.broken)
    return count
