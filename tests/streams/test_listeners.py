"""Who is told of changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_app.interface.principal import Principal
from mcp_app.models.fields import digest
from mcp_app.streams.listeners import Listeners


class Stream:
    """A listener that notes what it is told."""

    principal = Principal.ANONYMOUS
    owner = ""
    session = ""
    lasts = False
    seen = 0
    lasts = False

    def __init__(self, server: str, *lists: str, uri: str = "") -> None:
        self.server = server
        self._lists = lists
        self._uris = {digest(uri): uri} if uri else {}
        self.told: list[str] = []
        self.numbers: list[int] = []
        """Up to which it has been told all, each time."""

    def watched(self, what: str) -> str | None:
        return what if what in self._lists else self._uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*self._lists, *self._uris.values())

    def tell(self, what: Sequence[str], number: int) -> None:
        assert what
        self.told += what
        self.numbers.append(number)

    def beat(self) -> None:
        self.told.append("beat")

    def end(self, *, retry_ms: int | None = None) -> None:
        self.told.append(f"end {retry_ms}")


def test_a_listener_may_leave_while_others_are_told() -> None:
    listeners = Listeners()
    streams = [Stream("default", "tools") for _ in range(3)]
    for each in streams:
        listeners.add(each)
    assert len(listeners) == 3
    for listener in listeners:
        listeners.discard(listener)
        listeners.discard(listener)
    assert len(listeners) == 0
