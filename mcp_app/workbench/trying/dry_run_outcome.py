"""What became of a dry run, as values, and the sentences that people read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from django.db import Error
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy


class Ending(Enum):
    """How the transaction on a database ended."""

    UNDONE = "undone"
    COMMITTED = "committed"
    """Its savepoint is gone, although the connection is open."""
    BESIDE = "beside"
    """The function opened a connection of its own to the database."""
    LOST = "lost"
    """The function closed the connection, or the database ended the transaction."""
    CUT = "cut"
    """The connection was cut, because time was up or nobody waited any more."""
    STILL_OPEN = "held"
    """No other thread can end it; its own thread will roll it back."""
    UNREACHABLE = "unreachable"
    """Nothing was run."""


class Remark(Enum):
    """A further remark, such as why a function fails only in a dry run."""

    DURABLE = "durable"
    ABORTED = "aborted"
    AT_COMMIT = "at commit"
    LOCKED = "locked"
    OTHER_LOOP = "other loop"
    STILL_RUNS = "still runs"


_ENDINGS: Final[Mapping[Ending, Promise]] = {
    Ending.COMMITTED: gettext_lazy(
        "It committed by itself. What it wrote stays. The database is “%(alias)s”."
    ),
    Ending.BESIDE: gettext_lazy(
        "It opened a connection of its own to “%(alias)s”. What it wrote there stays."
    ),
    Ending.LOST: gettext_lazy(
        "Its transaction on “%(alias)s” was lost. The database undoes what was not"
        " committed. It is not known whether it had committed by itself before."
    ),
    Ending.CUT: gettext_lazy(
        "Its connection to “%(alias)s” was cut. The database undoes what was not"
        " committed. It is not known whether it had committed by itself before."
    ),
    Ending.STILL_OPEN: gettext_lazy(
        "The function still runs. Until it returns, it holds the lock of “%(alias)s”:"
        " others cannot write there."
    ),
    Ending.UNREACHABLE: gettext_lazy(
        "The database “%(alias)s” cannot be reached; a dry run needs all."
    ),
}
_REMARKS: Final[Mapping[Remark, Promise]] = {
    Remark.DURABLE: gettext_lazy(
        "It opens a durable transaction, which cannot be inside of another one. In"
        " earnest this works."
    ),
    Remark.ABORTED: gettext_lazy(
        "After an error, PostgreSQL refuses what follows in the same transaction. If"
        " the function catches the error, this works in earnest where no transaction"
        " is open. In a dry run it works if what may fail is in an atomic block of its"
        " own."
    ),
    Remark.AT_COMMIT: gettext_lazy(
        "It had returned. This error is what the database finds at the commit."
    ),
    Remark.LOCKED: gettext_lazy(
        "Somebody else wrote to the database at the same time. A dry run does not"
        " begin with the lock, and may wait for it in vain."
    ),
    Remark.OTHER_LOOP: gettext_lazy(
        "In a dry run, async functions run on an event loop of their own. A client that"
        " is kept for the loop of the process does not work there."
    ),
    Remark.STILL_RUNS: gettext_lazy(
        "The function still runs. What it asks of the databases from now on fails."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunOutcome:
    """What a dry run did, and whether nothing of it is left in the databases.

    `endings` has the databases, by their aliases, that were not simply rolled back.
    """

    statements: int = 0
    """How many statements the function executed."""
    topics: tuple[str, ...] = ()
    """The lists and URIs of which clients would be told, each once."""
    seconds: float = 0.0
    endings: Mapping[str, Ending] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    """The first words of statements that were refused because they commit."""
    remarks: tuple[Remark, ...] = ()

    @property
    def is_all_undone(self) -> bool:
        """Whether it is certain that every database is as it was before."""
        return _HARMLESS.issuperset(self.endings.values())

    def sentences(self) -> list[str]:
        """Return the sentences for people, in the active language."""
        sentences = [
            _ending_sentence(ending, alias) for alias, ending in self.endings.items()
        ]
        if not self.endings:
            sentences = [
                _("All that it wrote to the databases in its own thread was undone.")
            ]
        if self.refusals:
            message = _(
                "A dry run refuses statements that commit. It refused: %(words)s."
            )
            sentences.append(message % {"words": ", ".join(self.refusals)})
        sentences += [str(_REMARKS[remark]) for remark in self.remarks]
        if self.topics:
            message = _("It would tell clients: %(topics)s")
            sentences.append(message % {"topics": ", ".join(self.topics)})
        return sentences


_HARMLESS: Final = frozenset({Ending.UNDONE, Ending.UNREACHABLE})


def unreachable(alias: str) -> str:
    """Return the error of a dry run that cannot reach a database."""
    return _ending_sentence(Ending.UNREACHABLE, alias)


def _ending_sentence(ending: Ending, alias: str) -> str:
    return str(_ENDINGS[ending]) % {"alias": alias}


_ABORTED: Final = "25P02"
"""PostgreSQL's code for a statement after an error in the same transaction."""
_WORDS: Final = {
    "A durable atomic block": Remark.DURABLE,
    "database is locked": Remark.LOCKED,
    "attached to a different loop": Remark.OTHER_LOOP,
    "bound to a different event loop": Remark.OTHER_LOOP,
    "Event loop is closed": Remark.OTHER_LOOP,
}
"""Texts in errors of Django, SQLite and asyncio, which have no codes."""


def remark_on(error: BaseException) -> Remark | None:
    """Return the remark on an error that occurs only in a dry run."""
    if isinstance(error, Error):
        if getattr(error.__cause__, "sqlstate", None) == _ABORTED:
            return Remark.ABORTED
    elif not isinstance(error, RuntimeError):
        return None
    return next((each for words, each in _WORDS.items() if words in str(error)), None)
