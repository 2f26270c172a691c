"""Who is told of changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import pytest

from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.invalidation.change_reader import Name
from mcp_app.models.fields import digest
from mcp_app.streams.listeners import LISTS, Announcement, Listeners


class Stream:
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


URI: Final = "shop://orders/1"
RESOURCE: Final = ("uri", digest(URI))
ORDER: Final = ("model", "shop.order")


def shows(models: frozenset[str], uri: str) -> bool:
    return "shop.order" in models and uri.startswith("shop://orders/")


def personal(slug: str) -> tuple[str, ...]:
    return ("tools",) if slug == "default" else ()


def wanted(
    names: Mapping[Name, int | None], *, everything: bool = False, seen: int = 0
) -> list[str]:
    """Return what a stream is told that watches all lists and a resource."""
    stream = Stream("default", *LISTS, uri=URI)
    stream.seen = seen
    return Announcement(names, everything, shows, personal).wanted(stream)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], []),
        ([("tool", "1"), ("tool", "2"), ("list", "tools:*")], ["tools"]),
        ([("server", "1")], ["tools", "prompts", "resources", "events"]),
        ([("resourcetemplate", "1")], ["resources"]),
        ([("resource", "1")], ["resources"]),
        ([("list", "tools:staff")], []),
        ([("list", "prompts:default")], ["prompts"]),
        ([("session", "1"), ("rights", "*")], []),
        ([RESOURCE, ("prompt", "1")], [URI, "prompts"]),
        ([("uri", digest("shop://orders/2"))], []),
        # So many resources changed that none is named.
        ([("uri", "*")], [URI]),
        ([ORDER], [URI]),
        ([("model", "shop.customer")], []),
        ([ORDER, RESOURCE, ("uri", "*")], [URI]),
    ],
)
def test_each_thing_is_told_once(names: list[Name], told: list[str]) -> None:
    assert wanted(dict.fromkeys(names)) == told


def test_everything_is_all_that_a_stream_watches() -> None:
    assert wanted({}, everything=True, seen=9) == [*LISTS, URI]


@pytest.mark.parametrize("name", [("tool", "1"), RESOURCE, ORDER, ("uri", "*")])
def test_what_a_stream_has_seen_is_not_told_again(name: Name) -> None:
    assert wanted({name: 7}, seen=6) == wanted({name: None}, seen=7) != []
    assert wanted({name: 7}, seen=7) == wanted({name: 7}, seen=8) == []


def test_a_stream_that_watches_little() -> None:
    both, tools = Stream("default", "tools", uri=URI), Stream("other", "tools")
    told = Announcement(
        {("uri", "*"): 1, ORDER: 1}, everything=False, shows=shows, personal=personal
    )
    assert [told.wanted(each) for each in (both, tools)] == [[URI], []]


@pytest.mark.parametrize(
    ("names", "everything", "true"),
    [
        ({}, True, True),
        ({ORDER: None}, False, True),
        ({RESOURCE: 3}, False, True),
        ({("session", "1"): 3}, False, False),
        ({("rights", "7"): 3}, False, True),
    ],
)
def test_whether_there_is_anything_to_tell(
    names: dict[Name, int | None], everything: bool, true: bool
) -> None:
    assert bool(Announcement(names, everything, shows, personal)) is true


ANA: Final = Principal(kind="session", user_id="7").key
BY_TOKEN: Final = Principal(kind=ACCESS_TOKEN, user_id="7", client="f").key


@pytest.mark.parametrize(
    ("owner", "server", "ref", "told"),
    [
        (ANA, "default", "7", ["tools"]),
        (ANA, "default", "*", ["tools"]),
        (ANA, "default", "8", []),
        (ANA, "staff", "7", []),
        ("", "default", "*", []),
        (Principal(kind="badge").key, "default", "*", []),
        # What the token lets see may be other things now.
        (BY_TOKEN, "staff", "7", [*LISTS]),
        (BY_TOKEN, "staff", "*", []),
        (BY_TOKEN, "default", "*", ["tools"]),
    ],
)
def test_other_rights_are_told_to_those_concerned(
    owner: str, server: str, ref: str, told: list[str]
) -> None:
    stream = Stream(server, *LISTS, uri=URI)
    stream.owner = owner
    rights = {("rights", ref): 5}
    assert Announcement(rights, False, shows, personal).wanted(stream) == told
    stream.seen = 5
    assert Announcement(rights, False, shows, personal).wanted(stream) == []
