"""What is stopped, by what it is and by the key of its row."""

from __future__ import annotations

from dataclasses import replace

from mcp_app.catalog.stops import RETRY_S, Halt, Stops, cancelling, retry_after_s
from mcp_app.catalog.suggestions import fitting_suggestions, suggestions_of
from mcp_app.interface.definitions import (
    PromptArgument,
    PromptDefinition,
    ToolDefinition,
    ToolHints,
)
from mcp_app.interface.server import ServerDefinition
from tests.catalog.lint_cases import TEMPLATE, asking

ALL, CHANGES, ROW = Halt(1, True), Halt(2, False), Halt(3, True)
OTHER = Halt(4, True)
KEY = ("tool", "7")
NAME = ("tool", "reads")
READS = ToolDefinition(name="reads", hints=ToolHints(read_only=True))
WRITES = ToolDefinition(name="writes", hints=ToolHints(read_only=False))
UNSAID = ToolDefinition(name="unsaid")
AGAIN = ToolDefinition(name="again", hints=ToolHints(idempotent=True))
PROMPT = PromptDefinition(name="prompt")


def test_what_changes_things() -> None:
    stops = Stops(changes=(CHANGES,))
    for definition in (READS, PROMPT):
        assert stops.of_definition(definition, None, NAME) == ()
    for definition in (WRITES, UNSAID, AGAIN):
        assert stops.of_definition(definition, None, NAME) == (CHANGES,)


def test_a_row_of_its_own() -> None:
    stops = Stops(rows={KEY: (ROW,)}, names={NAME: (ROW, OTHER)})
    other = ("tool", "other")
    assert stops.of_definition(READS, KEY, other) == (ROW,)
    assert stops.of_definition(READS, ("prompt", "7"), other) == ()
    assert stops.of_definition(READS, None, other) == ()
    # What was deleted and made again, or has no row, is held by its name.
    assert stops.of_definition(READS, None, NAME) == (ROW, OTHER)
    assert stops.of_definition(READS, KEY, NAME) == (ROW, OTHER)
    assert stops.of_definition(READS, None, ("prompt", "reads")) == ()


def test_a_server_goes_with_everything() -> None:
    key = ("server", "7")
    server = ServerDefinition(slug="shop", key=key)
    stops = Stops(everything=(ALL,), rows={key: (ROW,)})
    assert stops.of_server(server) == (ALL, ROW)
    assert stops.of_server(ServerDefinition(slug="shop")) == (ALL,)
    assert Stops(changes=(CHANGES,)).of_server(server) == ()
    named = Stops(rows={key: (ROW,)}, names={("server", "shop"): (ROW,)})
    assert named.of_server(server) == (ROW,)
    assert named.of_server(ServerDefinition(slug="shop")) == (ROW,)
    assert named.of_server(ServerDefinition(slug="other")) == ()


def test_some_cancel_and_some_do_not() -> None:
    assert list(cancelling((ALL, CHANGES, ROW))) == [ALL, ROW]


def test_not_all_clients_try_again_at_once() -> None:
    drawn = {retry_after_s() for _ in range(200)}
    assert len(drawn) > 5
    assert RETRY_S[0] <= min(drawn) <= max(drawn) <= RETRY_S[1]


# -- suggestions -----------------------------------------------------------------------


COLOURS = ("Red", "dark red", "green", "Infrared", "REDDISH")


def test_what_begins_so_comes_before_what_holds_it() -> None:
    red = ["Red", "REDDISH", "dark red", "Infrared"]
    for typed, fitting in (("", [*COLOURS]), ("red", red), ("RED", red), ("blue", [])):
        assert fitting_suggestions(COLOURS, typed).values == fitting
    # Case is that of all languages.
    assert fitting_suggestions(["Straße"], "STRASSE").values == ["Straße"]


def test_what_is_suggested_by_name() -> None:
    tone = PromptArgument(name="tone", suggestions=("kind",))
    assert suggestions_of(asking(tone, PromptArgument(name="a"))) == {"tone": ("kind",)}
    assert suggestions_of(ToolDefinition(name="a")) == {}
    suggested = {"id": ("7",)}
    assert suggestions_of(replace(TEMPLATE, suggestions=suggested)) == suggested
