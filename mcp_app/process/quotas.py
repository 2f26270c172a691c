"""The limits on running calls and open streams."""

from __future__ import annotations

from mcp_app.conf import Limits
from mcp_app.interface.principal import Principal
from mcp_app.process.running import RunningCalls
from mcp_app.protocol.errors import Unavailable
from mcp_app.streams.listeners import Listener, Listeners


class Quotas:
    """Enforces the limits of this process, unless `LIMITS["rates"]` is false."""

    def __init__(
        self, limits: Limits, listeners: Listeners, running: RunningCalls
    ) -> None:
        self._limits = limits
        self._listeners = listeners
        self._running = running

    def admit(self, principal: Principal, calls: int) -> None:
        """Raise 429 if a principal would exceed its limit of running calls."""
        most = self._limits.running_calls
        if self._limits.rates and self._running.of(principal.key) + calls > most:
            raise _too_many(most, "running calls")

    def check_streams(self, listener: Listener) -> None:
        """Raise 503 or 429 if a limit of open streams is reached."""
        limits = self._limits
        if not limits.rates:
            return
        if len(self._listeners) >= limits.streams_per_process:
            raise Unavailable("This process has reached its limit of open streams.")
        own = [each for each in self._listeners if each.owner == listener.owner]
        if listener.owner and len(own) >= limits.streams_per_principal:
            raise _too_many(limits.streams_per_principal, "open streams")
        session = [each for each in own if each.session == listener.session]
        if listener.session and len(session) >= limits.streams_per_session:
            raise _too_many(limits.streams_per_session, "open streams in a session")


def _too_many(limit: int, what: str) -> Unavailable:
    return Unavailable(f"The limit of {limit} {what} is reached.", http_status=429)
