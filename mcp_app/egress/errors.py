"""What can become of a call to another site, if it is no answer."""

from __future__ import annotations


class EgressError(Exception):
    """A call without an answer; the message is for operators, not for clients.

    With `sent` the other site may have done what it was asked for.
    """

    def __init__(self, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class Forbidden(EgressError):
    """The rules of this site forbid the call: nothing was sent."""


class Unreachable(EgressError):
    """The other site cannot be had: no name, no connection, no whole answer."""


class TooSlow(EgressError):
    """The call took longer than the site's `timeout`."""


class TooLarge(EgressError):
    """The answer has more bytes than the site's `answer`."""


class Unreadable(EgressError):
    """The answer has a coding that was not asked for, or is broken."""
