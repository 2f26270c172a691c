"""What importing would do: shown before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.models import Prompt, Resource, Server, Tool
from mcp_app.models.versions import hash_of
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import Comparison, Outcome
from mcp_app.publishing.overlays import make_overlays
from tests.published import published
from tests.publishing.bundle.content import (
    REGISTRY,
    as_bytes,
    clear,
    entry,
    exported,
    fill,
    imported,
    tool,
)

pytestmark = pytest.mark.django_db

HEAD: dict[str, Any] = {"format": "django-mcp-app bundle", "version": 2}


def compared(file: dict[str, Any], registry: Registry = REGISTRY) -> Comparison:
    return bundle.compare_bundle(
        bundle.read_bundle(as_bytes({**HEAD, **file})), registry
    )


def tools(*contents: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [{"name": each["name"], "working": each} for each in contents]}


def as_published(entry: dict[str, Any], **content: Any) -> None:
    both = {**entry["published"]["content"], **content}
    entry["published"].update(content=both, hash=hash_of(both))


def outcomes(comparison: Comparison, *, publish: bool = False) -> dict[str, Outcome]:
    return {
        each.entry.key: each.outcome(publish=publish) for each in comparison.entries
    }


def test_new_changed_the_same_and_only_here() -> None:
    tool("same", title="Same")
    tool("changed", title="Old")
    tool("mine")
    file = exported()
    entry(file, "tools", "changed")["working"]["title"] = "New"
    file["tools"] = [each for each in file["tools"] if each["name"] != "mine"]
    file["tools"] += tools({"name": "new", "title": "New"})["tools"]
    comparison = compared(file)
    assert outcomes(comparison) == {
        "default": Outcome.SAME,
        "same": Outcome.SAME,
        "changed": Outcome.CHANGED,
        "new": Outcome.NEW,
    }
    assert comparison.only_here == 1
    changed = next(each for each in comparison.entries if each.entry.key == "changed")
    [difference] = changed.differences
    told = difference.field, difference.before, difference.after
    assert told == ("title", "Old", "New")
    # Nothing was written.
    assert set(Tool.objects.values_list("title", flat=True)) == {"Same", "Old", ""}


def test_what_is_published_or_the_same_is_no_conflict() -> None:
    row, server = published(tool()), Server.objects.get()
    file = exported()
    row.title, server.title = "Published", "Saved"
    row.save()
    Tool.objects.publish([row])
    server.save()
    default, hours = compared(file).entries
    assert (bool(hours.differences), hours.conflicts) == (True, [])
    assert default.conflicts[0].endswith("and not published: somebody.")
    assert not any(each.conflicts for each in compared(exported()).entries)


def test_what_the_rules_of_a_row_refuse_cannot_be() -> None:
    comparison = compared(
        {
            **tools(
                {"name": "a", "kind": "smoke"},
                {"name": "b", "title": "x" * 256},
                {"name": "c", "input_schema": {"type": "string"}},
                {"name": "d", "timeout": 0},
                {"name": "e", "tags": "a/b"},
                {"name": "f", "position": 2**70},
            ),
            "prompts": [
                {"name": "p", "working": {"name": "p", "arguments": [{"required": 1}]}}
            ],
            "servers": [
                {"slug": "sse", "access": ["public"], "page_size": 9},
                {"slug": "health", "access": ["public"], "page_size": 9},
                {"slug": "locked", "access": ["unknown"], "page_size": 9},
                {"slug": "wide", "access": [], "page_size": 5_000},
            ],
        }
    )
    assert set(outcomes(comparison).values()) == {Outcome.CANNOT}
    said = {each.entry.key: " ".join(each.problems) for each in comparison.entries}
    assert "smoke" in said["a"]
    assert "255" in said["b"]
    assert '"object"' in said["c"]
    assert "0.001" in said["d"]
    assert "“a/b”" in said["e"]
    assert said["f"]
    assert said["p"]
    for slug in ("sse", "health"):
        assert f"“{slug}” cannot be used here" in said[slug]
    assert "access: The settings have no authentication method" in said["locked"]
    assert "1000" in said["wide"]


def test_what_has_no_problem_of_its_own_stays_as_it_is() -> None:
    """A row that was right once does not hold up a file that leaves it alone."""
    Server.objects.create(slug="old", access="gone")
    file = exported()
    assert outcomes(compared(file))["old"] == Outcome.SAME


def test_a_definition_of_code_is_no_definition_made_here() -> None:
    registry = Registry()

    @registry.tool
    async def find(customer: str) -> str:
        return customer

    make_overlays(registry)
    made_here = tools({"name": "find", "title": "Mine"})
    [found] = compared(made_here, registry).entries
    assert found.problems == [
        (
            "At this site the definition is declared in code, but at the"
            " other site it was made in the admin."
        )
    ]
    Tool.objects.all().delete()
    tool("find")
    overlay = {"tools": [{"name": "find", "source": "code", "working": {"title": "A"}}]}
    [found] = compared(overlay, registry).entries
    assert found.problems == [
        (
            "At this site the definition was made in the admin, but the"
            " file has changes to a definition in code."
        )
    ]


def test_overlays_of_what_code_declares_are_not_broken() -> None:
    registry = Registry()

    @registry.tool
    async def find(customer: str) -> str:
        """Finds the orders of a customer."""
        return customer

    published(Tool(name="find", source="code", kind="function", title="Find"))
    file = exported()
    clear()
    [_, found] = compared(file, registry).entries
    assert (found.is_vanished, found.is_new) == (False, True)
    [_, gone] = compared(file, Registry()).entries
    assert gone.is_vanished
    assert gone.outcome(publish=True) == Outcome.NEW
    imported(as_bytes(file), publish=True, registry=registry)
    assert not Tool.objects.get().broken


def test_a_name_that_another_one_is_published_under() -> None:
    published(tool())
    file = exported()
    row = Tool.objects.get()
    row.name = "renamed"
    row.save()
    comparison = compared(file)
    assert outcomes(comparison)["hours"] == Outcome.NEW
    [_, found] = comparison.entries
    assert found.obstacles(publish=True) == [
        "“renamed” is published as hours already; choose another one."
    ]
    assert comparison.only_here == 1


def test_what_a_server_chooses_must_be_somewhere() -> None:
    tool("here")
    choice = {"tools": ["here", "new", "nowhere"], "prompts": ["here"]}
    file = {
        **tools({"name": "new"}),
        "servers": [
            {
                "slug": "shop",
                "access": [],
                "page_size": 9,
                "working": {"selection": "chosen", "chosen": choice},
            }
        ],
    }
    found = next(each for each in compared(file).entries if each.entry.key == "shop")
    assert found.problems == [
        (
            "The server in the file offers “nowhere”, which is"
            " neither at this site nor in the file."
        ),
        (
            "The server in the file offers “here”, which is"
            " neither at this site nor in the file."
        ),
    ]
    choice["tools"].remove("nowhere")
    del choice["prompts"]
    imported(as_bytes({**HEAD, **file}))
    server = Server.objects.get(slug="shop")
    assert sorted(server.tools.values_list("name", flat=True)) == ["here", "new"]


def test_what_a_server_published_is_compared_by_names() -> None:
    fill()
    file = exported()
    for row in (Tool.objects.get(name="hours"), Resource.objects.get()):
        row.delete()
    imported(as_bytes(file), publish=True)
    # The keys are others now, and so is the hash that is stored.
    server = Server.objects.get(slug="shop")
    assert server.published is not None
    assert server.published.hash != entry(file, "servers", "shop")["published"]["hash"]
    comparison = compared(file)
    assert set(outcomes(comparison, publish=True).values()) == {Outcome.SAME}


def test_limits_and_access_are_shown() -> None:
    file = exported()
    file["servers"][0].update(access=["public"], page_size=7)
    [found] = compared(file).entries
    shown = {each.field: each.after for each in found.differences}
    assert shown["page_size"] == "7"
    assert "public" in (shown["access"] or "")
    imported(as_bytes(file))
    server = Server.objects.get()
    assert (server.access_names, server.page_size) == (("public",), 7)


def test_what_was_published_by_other_rules_is_told() -> None:
    """What a row refuses is not published either."""
    published(tool())
    file = exported()
    as_published(entry(file, "tools", "hours"), input_schema={"type": "string"})
    entry(file, "tools", "hours")["working"] = {"name": "hours"}
    found = next(each for each in compared(file).entries if each.entry.key == "hours")
    assert found.outcome(publish=False) == Outcome.CHANGED
    [problem] = found.obstacles(publish=True)
    assert problem.startswith("input_schema: ")
    assert found.publication is not None
    assert [each.field for each in found.publication.differences] == ["input_schema"]


def test_more_rows_than_one_statement_names() -> None:
    Prompt.objects.bulk_create(
        Prompt(name=f"prompt_{number:04}") for number in range(1_300)
    )
    file = exported()
    assert len(file["prompts"]) == 1_300
    comparison = compared(file)
    assert len(comparison.entries_with_outcome(Outcome.SAME)) == 1_301
    assert comparison.only_here == 0
