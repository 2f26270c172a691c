"""How many calls may run, and how many streams may be open, for whom."""

from __future__ import annotations

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listener, Listeners


class Quotas:
    """Counts what is open in this process; without `LIMITS["rates"]` nothing is."""

    def __init__(
        self, limits: Limits, listeners: Listeners, running: RunningCalls
    ) -> None:
        self._limits = limits
        self._listeners = listeners
        self._running = running

    def admit(self, principal: Principal, calls: int) -> None:
        """Raise 429 where a principal would have more running calls than it may."""
        most = self._limits.running_calls
        if self._limits.rates and self._running.of(principal.key) + calls > most:
            raise _too_many(most, "running calls")

    def check_streams(self, listener: Listener) -> None:
        """Raise 503 or 429 where as many streams are open as may be."""
        limits = self._limits
        if not limits.rates:
            return
        if len(self._listeners) >= limits.streams_per_process:
            raise Unavailable("This process has as many open streams as it may.")
        own = [each for each in self._listeners if each.owner == listener.owner]
        if listener.owner and len(own) >= limits.streams_per_principal:
            raise _too_many(limits.streams_per_principal, "open streams")
        session = [each for each in own if each.session == listener.session]
        if listener.session and len(session) >= limits.streams_per_session:
            raise _too_many(limits.streams_per_session, "open streams in a session")


def _too_many(limit: int, what: str) -> Unavailable:
    return Unavailable(f"There are {limit} {what} already.", http_status=429)
