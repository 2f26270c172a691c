"""What can become of a call."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """How a call ended; the values are stored, and never change their meaning."""

    ANSWERED = "answered"
    ASKED = "asked"
    """The client must answer a question first, and call again."""
    ARGUMENTS = "arguments"
    """The arguments do not fit: nothing ran."""
    INVALID = "invalid"
    """The request itself is wrong: nothing ran."""
    UNKNOWN = "unknown"
    """Nothing has this name."""
    FORBIDDEN = "forbidden"
    """The caller lacks a right; it is told the same as for an unknown name."""
    SWITCHED_OFF = "switched_off"
    """The people who run the site have stopped it: nothing ran."""
    LIMITED = "limited"
    """The person has called the tool too often: nothing ran."""
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


FINE: Final = (Outcome.ANSWERED, Outcome.ASKED, Outcome.CANCELLED, Outcome.CLIENT_GONE)
"""Outcomes that are not failures: nobody needs to act."""
FAILED: Final = tuple(each.value for each in Outcome if each not in FINE)
