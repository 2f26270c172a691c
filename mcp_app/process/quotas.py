"""The limits on running calls and open streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listener, Listeners

if TYPE_CHECKING:
    from mcp_app.process.loading import Catalogs


class Quotas:
    """Enforces the limits of this process, unless `LIMITS["rates"]` is false.

    Limits of a principal hold for an anonymous caller's address, if that is known.
    """

    def __init__(
        self,
        limits: Limits,
        listeners: Listeners,
        running: RunningCalls,
        catalogs: Catalogs,
    ) -> None:
        self._limits = limits
        self._listeners = listeners
        self._running = running
        self._catalogs = catalogs

    def admit(self, principal: Principal, person: str, calls: int) -> None:
        """Raise 429 if a principal would exceed its limit of running calls.

        `person` is the key of an anonymous caller's address, "" if it is not known.
        """
        most, owner = self._limits.running_calls, principal.owner or person
        if self._limits.rates and owner and self._running.of(owner) + calls > most:
            raise _too_many(most, "running calls")

    def check_streams(self, listener: Listener, address: str) -> None:
        """Raise 503 or 429 if a limit of open streams is reached.

        `address` is that of an anonymous caller, "" if it is not known.
        """
        limits = self._limits
        if not limits.rates:
            return
        if len(self._listeners) >= limits.streams_per_process:
            raise Unavailable("This process has reached its limit of open streams.")
        if listener.principal.anonymous:
            self._check_strangers()
        if address and self._listeners.at(address) >= limits.streams_per_principal:
            raise _too_many(limits.streams_per_principal, "open streams")
        own = [each for each in self._listeners if each.owner == listener.owner]
        if listener.owner and len(own) >= limits.streams_per_principal:
            raise _too_many(limits.streams_per_principal, "open streams")
        session = [each for each in own if each.session == listener.session]
        if listener.session and len(session) >= limits.streams_per_session:
            raise _too_many(limits.streams_per_session, "open streams in a session")

    def halves_for_strangers(self) -> bool:
        """Whether anonymous callers have half of what all share.

        They have all of it if no server of this process asks people to sign in.
        """
        return self._limits.rates and self._catalogs.ask_to_sign_in

    def _check_strangers(self) -> None:
        """Raise 503 if anonymous callers have half of all streams, and others none."""
        if not self.halves_for_strangers():
            return
        strangers = sum(each.principal.anonymous for each in self._listeners)
        if strangers >= max(1, self._limits.streams_per_process // 2):
            raise Unavailable(
                "This process has reached its limit of open streams of anonymous"
                " callers."
            )


def _too_many(limit: int, what: str) -> Unavailable:
    return Unavailable(f"The limit of {limit} {what} is reached.", http_status=429)
