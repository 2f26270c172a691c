"""Who is told of changes."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_app.streams.listeners import LISTS, Listeners, digest_of


class Stream:
    """A listener that notes what it is told."""

    owner = ""
    session = ""

    def __init__(self, server: str, *lists: str, uri: str = "") -> None:
        self.server = server
        self._lists = lists
        self._uris = {digest_of(uri): uri} if uri else {}
        self.told: list[str] = []

    def watched(self, what: str) -> str | None:
        return what if what in self._lists else self._uris.get(what)

    def watching(self) -> Iterable[str]:
        return (*self._lists, *self._uris.values())

    def tell(self, what: str) -> None:
        self.told.append(what)

    def beat(self) -> None:
        self.told.append("beat")

    def end(self, *, retry_ms: int | None = None) -> None:
        self.told.append(f"end {retry_ms}")


def test_changes_go_to_those_who_watch() -> None:
    listeners = Listeners()
    tools, uri = Stream("default", "tools"), Stream("default", uri="test://a")
    elsewhere = Stream("other", *LISTS)
    for each in (tools, uri, elsewhere):
        listeners.add(each)
    assert len(listeners) == 3
    listeners.announce("tools", "default")
    listeners.announce("prompts")
    listeners.announce(digest_of("test://a"))
    listeners.announce(digest_of("test://b"))
    assert [each.told for each in (tools, uri, elsewhere)] == [
        ["tools"],
        ["test://a"],
        ["prompts"],
    ]


def test_so_many_resources_changed_that_none_is_named() -> None:
    listeners = Listeners()
    both, tools = Stream("default", "tools", uri="test://a"), Stream("other", "tools")
    for each in (both, tools):
        listeners.add(each)
    listeners.announce("*")
    assert [each.told for each in (both, tools)] == [["test://a"], []]


def test_resources_of_a_kind() -> None:
    listeners = Listeners()
    streams = [Stream("default", "tools", uri=f"test://{name}") for name in "ab"]
    for each in streams:
        listeners.add(each)
    listeners.announce_resources(lambda uri: uri.endswith("b"))
    assert [each.told for each in streams] == [[], ["test://b"]]


def test_everything_is_all_that_a_stream_watches() -> None:
    listeners = Listeners()
    stream = Stream("default", "tools", uri="test://a")
    listeners.add(stream)
    listeners.announce_everything()
    assert stream.told == ["tools", "test://a"]


def test_a_listener_may_leave_while_others_are_told() -> None:
    listeners = Listeners()
    streams = [Stream("default", "tools") for _ in range(3)]
    for each in streams:
        listeners.add(each)
    for listener in listeners:
        listeners.discard(listener)
        listeners.discard(listener)
    assert len(listeners) == 0
