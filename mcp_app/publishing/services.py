"""What staff do to definitions and stops: who may do it, and what the history says.

`by` is the person who does it; None stands for the command line.  A missing right
raises `PermissionDenied`, and what cannot be published `PublicationRefused`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import router, transaction
from django.utils.translation import gettext as _

from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import text_problem
from mcp_app.invalidation import workers
from mcp_app.invalidation.workers import hold_after_commit
from mcp_app.models import DefinitionVersion, PublishedRow, Server, Stop
from mcp_app.models.history import ADDITION, CHANGE, DELETION, log_actions
from mcp_app.models.stops import By, Running, stop_matcher
from mcp_app.models.transactions import own_transaction
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing import bundle, publication
from mcp_app.publishing.bundle import Bundle, Comparison, ImportedRow
from mcp_app.publishing.overlays import declared_definition
from mcp_app.publishing.publication import PublicationRefused
from mcp_app.publishing.rights import Person, lets_others, require_right, runs_another
from mcp_app.publishing.stop_targets import row_of_stop

Row = TypeVar("Row", bound=PublishedRow)

MAX_NOTE_LENGTH: Final = 1_000


def publish(
    by: Person | None, row: PublishedRow, *, looked_at: str, number: int, note: str = ""
) -> DefinitionVersion:
    """Publish the working copy, as `publication.publish_working_copy`."""
    require_right(by, "publish")
    using = router.db_for_write(type(row))
    with transaction.atomic(using=using):
        version = _publish_row(by, row, looked_at, number, note)
        message = _("Published version %(number)d.") % {"number": version.number}
        if version.number != number:
            log_actions(by, [row], CHANGE, f"{message} {version.note}".strip())
        hold_after_commit(using)
    return version


def publish_all(
    by: Person | None, looked_at: Mapping[Row, tuple[str, int]], note: str = ""
) -> int:
    """Publish all working copies or none; return how many were not served already.

    `looked_at` has the hash and the version of each.  The caller waits for the workers.
    """
    require_right(by, "publish")
    count = 0
    with transaction.atomic():
        # Lock several rows in this order everywhere, to avoid deadlocks.
        for row in sorted(looked_at, key=lambda each: each.pk):
            hashed, number = looked_at[row]
            try:
                version = _publish_row(by, row, hashed, number, note)
            except PublicationRefused as refused:
                text = _("Nothing was published. %(row)s: %(reason)s")
                values = {"row": row, "reason": refused.message}
                raise PublicationRefused(text % values) from refused
            if version.number != number:
                count += 1
                text = _("Published version %(number)d.")
                log_actions(by, [row], CHANGE, text % {"number": version.number})
    return count


def _publish_row(
    by: Person | None, row: PublishedRow, looked_at: str, number: int, note: str
) -> DefinitionVersion:
    return publication.publish_working_copy(
        row, mcp, author=by, note=_valid_note(note), looked_at=looked_at, number=number
    )


def roll_back(
    by: Person | None,
    row: PublishedRow,
    version: DefinitionVersion,
    *,
    number: int,
    note: str = "",
    working_copy: bool = False,
) -> DefinitionVersion:
    """Publish an old version again, as `publication.roll_back`."""
    require_right(by, "publish")
    _require_for_content(by, row, version.read(), working_copy=working_copy)
    using = router.db_for_write(type(row))
    with transaction.atomic(using=using):
        again = publication.roll_back(
            row,
            version,
            mcp,
            author=by,
            note=_valid_note(note),
            number=number,
            working_copy=working_copy,
        )
        message = _("Published version %(old)d again as version %(number)d.")
        message %= {"old": version.number, "number": again.number}
        if again.number != number:
            log_actions(by, [row], CHANGE, f"{message} {again.note}".strip())
        hold_after_commit(using)
    return again


def _require_for_content(
    by: Person | None, row: PublishedRow, content: JsonObject, *, working_copy: bool
) -> None:
    """Demand the rights that the guarded columns of an old version need."""
    now = row.working_content()
    # The working copy of an unpublished row says who may use it.
    served = now if row.published is None else row.published_content()
    if lets_others(served, content):
        require_right(by, "grant")
    if not working_copy:
        return
    require_right(by, f"change_{row.kind_of_row}")
    if lets_others(now, content):
        require_right(by, "grant")
    if runs_another(now, content):
        require_right(by, "behind")


def unpublish(by: Person | None, row: PublishedRow, *, number: int) -> None:
    """Take a row off the lists, as `publication.unpublish`."""
    require_right(by, "publish")
    using = router.db_for_write(type(row))
    with transaction.atomic(using=using):
        publication.unpublish(row, number=number)
        if number:  # Without a number it was not published: nothing has changed.
            log_actions(by, [row], CHANGE, _("Taken off the lists."))
        hold_after_commit(using)


def delete(by: Person | None, row: Any) -> None:
    """Delete a row with its versions, unless code declares it: it would come back."""
    require_right(by, f"delete_{row.kind_of_row}")
    if getattr(row, "from_code", False) and declared_definition(row, mcp) is not None:
        raise PublicationRefused(_("The code declares it, so it would come back."))
    using = router.db_for_write(type(row))
    with transaction.atomic(using=using):
        log_actions(by, [row], DELETION, "")
        row.delete()
        hold_after_commit(using)


def unpublish_all(by: Person | None, published: Any) -> tuple[int, int]:
    """Take rows off the lists; return how many, and how many code declares.

    The caller waits for the workers.
    """
    require_right(by, "publish")
    with transaction.atomic():
        # Lock several rows in this order everywhere, to avoid deadlocks.
        rows = list(published.select_for_update().order_by("pk"))
        removed = [row for row in rows if not getattr(row, "from_code", False)]
        published.model.rows().unpublish(removed)
        log_actions(by, removed, CHANGE, _("Taken off the lists."))
    return len(removed), len(rows) - len(removed)


def _valid_note(note: str) -> str:
    """Return the note for the history; raise `PublicationRefused` if it is invalid."""
    note = note.strip()
    if len(note) > MAX_NOTE_LENGTH:
        text = _("The note has %(count)d characters; at most %(most)d are allowed.")
        raise PublicationRefused(text % {"count": len(note), "most": MAX_NOTE_LENGTH})
    if problem := text_problem(note, lines=True):
        raise PublicationRefused(problem)
    return note


def import_bundle(
    by: Person | None,
    read: Bundle,
    *,
    looked_at: str | None,
    publish: bool = False,
    origin: str = "",
    author: AbstractBaseUser | None = None,
) -> list[ImportedRow]:
    """Import a file, as `bundle.import_bundle`; a command may name an `author`."""
    require_right(by, "bundle")
    author = author or by

    def check_rights(comparison: Comparison) -> None:
        needed = bundle.needed_rights(comparison, publish=publish)
        for right in (*needed, *(["publish"] if publish else ())):
            require_right(by, right)

    using = router.db_for_write(Server)
    with own_transaction(using):
        done = bundle.import_bundle(
            read,
            mcp,
            author=author,
            looked_at=looked_at,
            publish=publish,
            origin=origin,
            allowed=check_rights,
        )
        for each in done:
            flag = ADDITION if each.is_new else CHANGE
            log_actions(author, [each.row], flag, each.sentence)
        hold_after_commit(using)
    return done


# -- stops -----------------------------------------------------------------------------
# If `by` is None, `name` says who it is.


def stop(
    by: Person | None,
    scope: str,
    row: PublishedRow | None = None,
    *,
    name: str = "",
    running: str = Running.CANCEL,
    reason: str = "",
) -> Stop:
    """Stop something, as `workers.stop`."""
    require_right(by, "stop")
    author = _stop_author(by, name)
    with transaction.atomic(using=router.db_for_write(Stop)):
        made = workers.stop(scope, row, by=author, running=running, reason=reason)
        message = _("Stopped %(what)s; running calls: %(running)s. %(reason)s") % {
            "what": made.what,
            "running": made.get_running_display(),
            "reason": made.reason,
        }
        log_actions(by, [row or made], CHANGE, message.strip())
    return made


def stop_all(by: Person | None, rows: Iterable[PublishedRow]) -> int:
    """Stop these servers or definitions, and cancel their running calls."""
    require_right(by, "stop")
    with transaction.atomic(using=router.db_for_write(Stop)):
        stopped = list(rows)
        workers.stop_rows(stopped, by=_stop_author(by))
        log_actions(by, stopped, CHANGE, _("Stopped."))
    return len(stopped)


def start(by: Person | None, keys: Iterable[int], *, name: str = "") -> list[Stop]:
    """End these stops, by their keys; return the ones that were still active."""
    require_right(by, "stop")
    with transaction.atomic(using=router.db_for_write(Stop)):
        ended = workers.start(keys, by=_stop_author(by, name))
        for each in ended if by else ():
            message = _("Started again: %(what)s.") % {"what": each.what}
            log_actions(by, [row_of_stop(each) or each], CHANGE, message)
    return ended


def start_all(by: Person | None, stopped: Iterable[PublishedRow]) -> int:
    """End the stops of these rows; return how many rows were stopped."""
    require_right(by, "stop")
    with transaction.atomic(using=router.db_for_write(Stop)):
        rows = list(stopped)
        keys = [each.pk for each in Stop.objects.of_rows(rows)]
        is_started = stop_matcher(workers.start(keys, by=_stop_author(by)))
        started = [row for row in rows if is_started(row)]
        log_actions(by, started, CHANGE, _("Started."))
    return len(started)


def _stop_author(by: Person | None, name: str = "") -> By:
    return By(name) if by is None else By(by.get_username(), str(by.pk))
