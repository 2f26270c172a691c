"""Publishing after a preview: what would change for clients, what must be fixed.

The caller says which content and version somebody has looked at.  If these have
changed since, nothing is published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, OperationalError, router, transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mcp_app.catalog.findings import Finding
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.row_loader import uploads_of
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import (
    DefinitionRow,
    DefinitionVersion,
    EventSubscription,
    EventType,
    PublishedRow,
    Server,
)
from mcp_app.models.fields import parse_json
from mcp_app.models.transactions import is_conflict
from mcp_app.models.versions import hash_of
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.differences import (
    ClientView,
    Difference,
    breaking_reasons,
    client_view,
    differences,
)
from mcp_app.publishing.row_findings import (
    UNSERVABLE,
    Findings,
    conflict_finding,
    judge_content,
    judge_row_content,
    store_findings,
)


def count_subscriptions(row: PublishedRow, after: JsonObject) -> int:
    """Count the webhooks whose arguments an event type refuses from now on."""
    if not isinstance(row, EventType):
        return 0
    fits = schemas.compile_schema(after.get("input_schema", {})).is_valid
    rows = EventSubscription.objects.filter(event_type=row.name)
    texts = rows.values_list("arguments", flat=True)
    return sum(not fits(parse_json(text)) for text in texts)


Row = TypeVar("Row", bound=PublishedRow)


class PublicationRefused(Exception):
    """Nothing was published; the message says why, for the person at the page."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class OutOfDate(PublicationRefused):
    """Somebody else saved or published since the page was looked at."""


class NotReady(PublicationRefused):
    """Something must be fixed first."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__(" ".join(finding.message for finding in findings))
        self.findings = findings


@dataclass(frozen=True)
class Proposal(Generic[Row]):
    """What would be published of a row, beside what clients see now."""

    row: Row
    served: DefinitionVersion | None
    content: JsonObject
    content_hash: str
    judged: Findings
    before: ClientView
    after: ClientView

    @property
    def number(self) -> int:
        """The number of the version that is served, 0 for none."""
        return 0 if self.served is None else self.served.number

    @cached_property
    def differences(self) -> list[Difference]:
        """What changes for clients, in words."""
        return differences(self.before, self.after)

    @property
    def breaks(self) -> list[str]:
        """Why old calls break; if the row is unpublished, there are none."""
        if self.served is None:
            return []
        reasons = breaking_reasons(self.before.content, self.after.content)
        count = count_subscriptions(self.row, self.after.content)
        text = ngettext(
            "%(count)s subscription, which ends",
            "%(count)s subscriptions, which end",
            count,
        )
        return [*reasons, text % {"count": count}] if count else reasons

    @property
    def is_served_already(self) -> bool:
        return self.row.served_hash() == self.content_hash


def propose_publication(row: Row, registry: Registry) -> Proposal[Row]:
    """Return what publishing the working copy would do."""
    [proposal] = propose_all([row], registry)
    return proposal


def propose_all(rows: Sequence[Row], registry: Registry) -> list[Proposal[Row]]:
    """Return what publishing each of these rows would do, in few statements."""
    contents = {row: row.working_content() for row in rows}
    conflicts = _taken_by_others(contents)
    proposals = []
    for row, content in contents.items():
        judged = judge_content(row, content, registry, uploads_of(content))
        lint = Findings([*conflicts.get(row, ()), *judged.findings], judged.tokens)
        views = _both_views(row, content, registry)
        hashed = hash_of(content)
        proposals.append(Proposal(row, row.published, content, hashed, lint, *views))
    return proposals


def _taken_by_others(
    contents: Mapping[Row, JsonObject],
) -> Mapping[Row, Sequence[Finding]]:
    """Return a finding for each row whose published name or URI another row has."""
    identities = {
        row: row.identity_hash(str(content.get(row.IDENTITY, "")))
        for row, content in contents.items()
        if isinstance(row, DefinitionRow) and not row.from_code
    }
    if not identities:
        return {}
    model = type(next(iter(identities)))
    rows = model.rows().filter(published_identity__in=set(identities.values()))
    by_identity = {each.published_identity: each for each in rows}
    return {
        row: [conflict_finding(other, str(contents[row][row.IDENTITY]))]
        for row, identity in identities.items()
        if (other := by_identity.get(identity)) is not None and other.pk != row.pk
    }


def propose_version(
    row: Row, version: DefinitionVersion, registry: Registry
) -> Proposal[Row]:
    """Return what rolling back to a version would do.

    A version that was published once may be published again, if it can be served.
    """
    content = version.read()
    judged = judge_row_content(row, content, registry)
    findings = [
        finding if finding.rule in UNSERVABLE else finding.as_advice()
        for finding in judged.findings
    ]
    return Proposal(
        row,
        row.published,
        content,
        version.hash,
        Findings(findings, judged.tokens),
        *_both_views(row, content, registry),
    )


def _both_views(
    row: PublishedRow, content: JsonObject, registry: Registry
) -> Iterator[ClientView]:
    """Yield what clients get now, and with this content."""
    for each in (row.published_content(), content):
        yield client_view(row, each, registry)


def publish_working_copy(
    row: Row,
    registry: Registry,
    *,
    author: AbstractBaseUser | None,
    note: str = "",
    looked_at: str,
    number: int,
) -> DefinitionVersion:
    """Publish the working copy; `looked_at` is its hash on the page, `number` the
    version that clients saw then (0 for none).  Raises `PublicationRefused`.
    """
    with _one_at_a_time(row):
        locked = _lock_for_update(row)
        if locked.working_hash() != looked_at:
            message = _(
                "The working copy changed while this page was open (%(by)s). Check it"
                " again, then publish."
            )
            by = getattr(locked, "updated_by", None) or _("by a command")
            raise OutOfDate(message % {"by": by})
        proposal = propose_publication(locked, registry)
        version = _publish_proposal(proposal, number, author, note)
        if isinstance(locked, DefinitionRow):
            store_findings(locked, registry, proposal.judged)
        return version


def publish_default_server(registry: Registry) -> None:
    """Make the default server again, as migrations made it, if its row is gone."""
    row, is_new = Server.objects.get_or_create(slug=DEFAULT_SLUG)
    if is_new:
        publish_working_copy(
            row, registry, author=None, looked_at=row.working_hash(), number=0
        )


def roll_back(
    row: Row,
    version: DefinitionVersion,
    registry: Registry,
    *,
    author: AbstractBaseUser | None,
    note: str = "",
    number: int,
    working_copy: bool = False,
) -> DefinitionVersion:
    """Publish an old version again, under the next number.

    With `working_copy` that is set back, too.  Raises `PublicationRefused`.
    """
    with _one_at_a_time(row):
        locked = _lock_for_update(row)
        proposal = propose_version(locked, version, registry)
        new_version = _publish_proposal(proposal, number, author, note, version.number)
        if working_copy:
            _restore_working_copy(locked, proposal.content)
        if isinstance(locked, DefinitionRow):
            store_findings(locked, registry)
        return new_version


def _restore_working_copy(row: PublishedRow, content: JsonObject) -> None:
    row.put_content(content)
    try:
        with transaction.atomic(using=router.db_for_write(type(row))):
            row.save()
    except IntegrityError as error:
        raise PublicationRefused(
            _(
                "Another working copy has this name or address by now. Keep this "
                "working copy as it is, or rename the other."
            )
        ) from error
    row.put_choices(content)


def unpublish(row: PublishedRow, *, number: int) -> None:
    """Take a row off the lists.  Raises `PublicationRefused`."""
    with _one_at_a_time(row):
        locked = _lock_for_update(row)
        _check_number(locked, number)
        if isinstance(locked, DefinitionRow) and locked.from_code:
            raise PublicationRefused(declared_in_code())
        locked.rows().unpublish([locked])


def declared_in_code() -> str:
    """Return why what code declares cannot be taken off the lists."""
    return _(
        "The code declares this definition, so you cannot unpublish"
        " it. To hide it, stop it. To serve it as in the code, press"
        " “Use everything from code”, and publish."
    )


@contextmanager
def _one_at_a_time(row: PublishedRow) -> Iterator[None]:
    """Open a transaction; raise `OutOfDate` if the database prefers another one."""
    try:
        with transaction.atomic(using=router.db_for_write(type(row))):
            yield
    except OperationalError as error:
        if not is_conflict(error):
            raise
        raise overtaken_error() from error


def overtaken_error() -> OutOfDate:
    """Return the refusal if the database let another transaction go first."""
    return OutOfDate(
        _("Somebody else changed something here at the same time. Check it again.")
    )


def _lock_for_update(row: Row) -> Row:
    current_row: Row | None = row.rows().select_for_update().filter(pk=row.pk).first()
    if current_row is None:
        raise PublicationRefused(
            _("“%(row)s” was deleted while this page was open.") % {"row": row}
        )
    return current_row


def _publish_proposal(
    proposal: Proposal[Row],
    number: int,
    author: AbstractBaseUser | None,
    note: str,
    restored: int | None = None,
) -> DefinitionVersion:
    row = proposal.row
    _check_number(row, number)
    if proposal.judged.to_fix:
        raise NotReady(proposal.judged.to_fix)
    try:
        with transaction.atomic(using=router.db_for_write(type(row))):
            [version] = row.rows().publish_contents(
                {row: proposal.content}, author=author, note=note, restored=restored
            )
    except IntegrityError as error:
        raise PublicationRefused(
            _(
                "Meanwhile, something else was published under this name. Check the"
                " working copy again."
            )
        ) from error
    return version


def _check_number(row: PublishedRow, number: int) -> None:
    """Raise `OutOfDate` if another version is served than that with this number."""
    served = row.published
    now = 0 if served is None else served.number
    if now == number:
        return
    if served is None:
        message = _(
            "Version %(number)d was taken off the lists while this page was open."
        )
        raise OutOfDate(message % {"number": number})
    message = _(
        "Version %(number)d was published by %(author)s while this page was open."
    )
    author = served.author_name or _("a command")
    raise OutOfDate(message % {"number": now, "author": author})
