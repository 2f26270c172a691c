"""The fields of a call for the audit; a new column of the call log is added here first.

The audit takes plain tuples with these fields, in this order: named tuples would cost
each call 4 % more.

The model `Call` has a column for each field of `Circumstances` but the last, and for
each of `COLUMNS`; what is measured of a call is in `Call.OWN`, too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

CircumstancesValues: TypeAlias = tuple[Any, ...]
"""The values of `Circumstances`, in their order."""
CallValues: TypeAlias = tuple[Any, ...]
"""The values of a `CallRecord`, in their order."""


class Circumstances(NamedTuple):
    """What a call has in common with others; equal ones are stored once."""

    server: str
    kind: str
    name: str
    version: int
    outcome: str
    principal: str
    """The kind of the principal."""
    user_id: str
    user_name: str
    principal_client: str
    client_name: str
    client_version: str
    session: str
    revision: str
    hidden: tuple[str, ...] | None = None
    """Members of the arguments that are not kept; None if no values are kept."""


class CallRecord(NamedTuple):
    """A call that has its answer."""

    circumstances: Circumstances
    began: float
    """Seconds of the monotonic clock."""
    took: float
    """Seconds."""
    size: int
    """Bytes of the answer."""
    arguments: bytes
    """The canonical arguments if they are short, else nothing."""
    arguments_size: int
    """Bytes of the arguments if they are long, else 0."""
    arguments_digest: str
    """The digest of the arguments if they are long."""
    ending: Ending


class Outcome(StrEnum):
    """How a call ended; the values are stored, and never change their meaning."""

    ANSWERED = "answered"
    ASKED = "asked"
    """The client must answer a question first, and call again."""
    TASK = "task"
    """The call became a task, which runs in the background."""
    ARGUMENTS = "arguments"
    """The arguments do not fit: nothing ran."""
    INVALID = "invalid"
    """The request itself is wrong: nothing ran."""
    UNKNOWN = "unknown"
    """Nothing has this name."""
    FORBIDDEN = "forbidden"
    """The caller lacks a right; what it must not see is unknown to it."""
    SWITCHED_OFF = "switched_off"
    """The people who run the site have stopped it: nothing ran."""
    LIMITED = "limited"
    """The person has called too often, or has too many tasks."""
    INCAPABLE = "incapable"
    """The client cannot do what the call needs."""
    TOOL_ERROR = "tool_error"
    """The tool reported an error."""
    OTHER_SITE = "other_site"
    """Another site refused the call, failed, or could not be reached."""
    EGRESS = "egress"
    """The rules for calls of other sites refused it: nothing was sent."""
    CRASHED = "crashed"
    """User code raised what it should not; `failure` finds it in the log."""
    TIMED_OUT = "timed_out"
    TOO_LARGE = "too_large"
    SHAPE = "shape"
    """The answer is not of the shape that was promised, or cannot be sent."""
    CANCELLED = "cancelled"
    CLIENT_GONE = "client_gone"
    SHUT_DOWN = "shut_down"
    UNAVAILABLE = "unavailable"
    """The database, or a free thread, could not be had."""
    FAILED = "failed"
    """A fault of this server."""


FINE: Final = (
    *(Outcome.ANSWERED, Outcome.ASKED, Outcome.TASK),
    *(Outcome.CANCELLED, Outcome.CLIENT_GONE),
)
"""Outcomes that are not failures: nobody needs to act."""
REFUSED: Final = (
    Outcome.ARGUMENTS,
    Outcome.INVALID,
    Outcome.UNKNOWN,
    Outcome.FORBIDDEN,
    Outcome.SWITCHED_OFF,
    Outcome.LIMITED,
    Outcome.INCAPABLE,
    Outcome.TOOL_ERROR,
)
"""Outcomes by the caller's values or rights: nothing here is at fault."""
FAILED: Final = tuple(each for each in Outcome if each not in (*FINE, *REFUSED))
"""Outcomes by a fault of the tool, of this site or of another one."""


class Ending(NamedTuple):
    """How a call ended, for the call log and the span.

    Each field is a column of `Call` with the same name, but for `NO_COLUMNS`.
    """

    outcome: Outcome = Outcome.ANSWERED
    error: str = ""
    """What the client was told; staff may be told more."""
    failure: str = ""
    """The number of a crash in the log."""
    code: int = 0
    """The code of the JSON-RPC error, 0 for none."""


ANSWERED: Final = Ending()
NO_COLUMNS: Final = {"outcome", "code"}
"""The outcome is one of the `Circumstances`; only spans have the code."""
COLUMNS: Final = tuple(field for field in Ending._fields if field not in NO_COLUMNS)
