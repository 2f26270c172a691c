"""The stream of a client that came back for the rest of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_app.transports.standing import OpenStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ResumedStream(OpenStream):
    """Sends what the log says after the last event that the client has."""

    __slots__ = ()

    def opened(self) -> None:
        """What it is told from now on is written at once."""
        self._opened(0)

    # -- a reader of the log ----------------------------------------------------------

    def began(self) -> None:
        """The stream was there before its client came back."""

    def message(self, payload: bytes, event_id: str) -> None:
        self._stream.message(payload, event_id)

    def ended(self) -> None:
        self._stream.end()

    # -- a listener that watches nothing --------------------------------------------

    def watched(self, what: str) -> str | None:
        return None

    def watching(self) -> Iterable[str]:
        return ()

    def _tell(self, what: Sequence[str], number: int) -> None:
        """It watches nothing, so that it is told nothing."""

    def _end(self, retry_ms: int | None) -> None:
        self._stream.end(retry_ms=retry_ms)
