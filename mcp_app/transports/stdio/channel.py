"""One client's channel: its output, and the ids of its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcp_app.interface.principal import Principal
    from mcp_app.process.runtime import Process


Write = Callable[[bytes], object]


class Cancellable(Protocol):
    """A request that runs."""

    def cancel(self) -> None:
        """Cancel it without an answer."""


class Channel:
    """One client at the end of a two-way channel; used on the loop only.

    A message is written with `write` once it is whole.
    """

    def __init__(
        self, current: Process, slug: str, principal: Principal, write: Write
    ) -> None:
        self.write = write
        self.current = current
        self.slug = slug
        self.principal = principal
        self.running: dict[str | int, Cancellable] = {}

    def forget(self, request_id: str | int, running: Cancellable) -> None:
        """Free an id, unless another request has it by now."""
        if self.running.get(request_id) is running:
            del self.running[request_id]
