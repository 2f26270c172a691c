"""What became of a dry run, and how it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from django.db import IntegrityError, OperationalError
from django.utils import translation

from mcp_app.catalog.snapshot import Catalog, Entry
from mcp_app.interface.server import CALL_TOOL, ServerDefinition
from mcp_app.kinds import KindError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.server.own_tools import own_tools
from mcp_app.workbench.trying.dry_run_outcome import (
    DryRunOutcome,
    Ending,
    Remark,
    remark_on,
    unreachable,
)
from mcp_app.workbench.trying.offer import TriedRow
from tests.catalog.test_snapshot import prompt, resource, template, tool

NOT_UNDONE = {each for each in Ending if each.value not in ("undone", "unreachable")}


@pytest.fixture(autouse=True)
def _in_english() -> Iterator[None]:
    with translation.override("en"):
        yield


@pytest.mark.parametrize("ending", Ending)
def test_all_is_undone_only_where_that_is_certain(ending: Ending) -> None:
    outcome = DryRunOutcome(endings={"archive": ending})
    assert outcome.is_all_undone is (ending not in NOT_UNDONE)


@pytest.mark.parametrize("ending", sorted(NOT_UNDONE, key=str))
def test_one_database_is_enough(ending: Ending) -> None:
    there = {"archive": ending, "default": Ending.UNREACHABLE}
    outcome = DryRunOutcome(endings=there)
    assert not outcome.is_all_undone
    sentences = outcome.sentences()
    assert "“archive”" in sentences[0]
    assert sentences[1] == unreachable("default")
    assert not any("All that it wrote" in each for each in sentences)


def test_what_else_is_told() -> None:
    outcome = DryRunOutcome(
        topics=("tools", "shop://100%"),
        refusals=("COMMIT", "BEGIN"),
        remarks=(Remark.DURABLE,),
    )
    first, refusals, remark, topics = outcome.sentences()
    assert first == "All that it wrote to the databases in its own thread was undone."
    assert refusals.endswith("It refused: COMMIT, BEGIN.")
    assert "durable" in remark
    assert topics == "It would tell clients: tools, shop://100%"


def test_each_remark_has_a_sentence_of_its_own() -> None:
    sentences = {DryRunOutcome(remarks=(each,)).sentences()[1] for each in Remark}
    assert len(sentences) == len(Remark)
    assert all(each.endswith(".") for each in sentences)


# -- tried row -------------------------------------------------------------------------


READ: Final = "resources/read"
PAGE: Final[JsonObject] = {"uri": "shop://pages/7"}
CALLED: Final[JsonObject] = {"name": "a"}
SUGGESTED: Final[JsonObject] = {"ref": {"type": "ref/prompt", "name": "a"}}
OF_TEMPLATE: Final[JsonObject] = {"ref": {"type": "ref/resource", "uri": "shop://{+b}"}}
ROW: Final = TriedRow(("tool", "7"), from_code=False)
DECLARED: Final = TriedRow(("tool", "7"), from_code=True)


def of_row(entry: Entry[Any, Any], ref: str = "7") -> Entry[Any, Any]:
    entry.key = ("tool", ref)
    return entry


def catalog_of(**lists: Any) -> Catalog:
    server = ServerDefinition(slug="shop", listing="search")
    return Catalog(server, own_tools=own_tools, **lists)


@pytest.mark.parametrize(
    ("name", "entry", "method", "params"),
    [
        ("tools", tool("a"), "tools/call", CALLED),
        ("prompts", prompt("a"), "prompts/get", CALLED),
        ("prompts", prompt("a"), "completion/complete", SUGGESTED),
        ("templates", template("shop://{+b}"), "completion/complete", OF_TEMPLATE),
        ("templates", template("shop://{+b}"), READ, PAGE),
        ("resources", resource("shop://pages/7"), READ, PAGE),
    ],
)
@pytest.mark.parametrize("is_stopped", [False, True])
def test_only_the_row_answers(
    name: str, entry: Entry[Any, Any], method: str, params: JsonObject, is_stopped: bool
) -> None:
    offered = {"stopped": {name: {entry.identity: entry}}} if is_stopped else {}
    catalog = catalog_of(**offered) if offered else catalog_of(**{name: [entry]})
    entry.key = None
    assert DECLARED.restrict_catalog(catalog, method, params) is catalog
    with pytest.raises(KindError, match="another definition answers"):
        ROW.restrict_catalog(catalog, method, params)
    of_row(entry)
    for each in (ROW, DECLARED):
        assert each.restrict_catalog(catalog, method, params) is catalog
    of_row(entry, "8")
    for each in (ROW, DECLARED):
        with pytest.raises(KindError, match=f"“{entry.definition.name}”"):
            each.restrict_catalog(catalog, method, params)


def test_nothing_else_answers_who_may_not_see_it() -> None:
    mine, other = of_row(template("shop://pages/{b}")), template("shop://{+b}", "z")
    off = template("shop://{a}/{b}", "y")
    catalog = catalog_of(
        templates=[mine, other], stopped={"templates": {off.identity: off}}
    )
    alone = ROW.restrict_catalog(catalog, READ, PAGE)
    assert [each.entry for each in alone.matches_of_uri(PAGE["uri"])] == [mine]
    assert len([*catalog.matches_of_uri(PAGE["uri"])]) == 3
    with pytest.raises(KindError, match="“r”"):
        ROW.restrict_catalog(
            catalog.with_changes({"resources": {PAGE["uri"]: resource(PAGE["uri"])}}),
            READ,
            PAGE,
        )


def test_what_is_not_offered_is_answered_as_always() -> None:
    catalog = catalog_of()
    assert ROW.restrict_catalog(catalog, "tools/call", CALLED) is catalog
    assert ROW.restrict_catalog(catalog, READ, PAGE) is catalog


@pytest.mark.parametrize("row", [ROW, DECLARED])
def test_a_tool_that_calls_others_is_nobody_s_row(row: TriedRow) -> None:
    catalog = catalog_of(tools=[tool("a")])
    with pytest.raises(KindError, match=CALL_TOOL):
        row.restrict_catalog(catalog, "tools/call", {"name": CALL_TOOL})


# -- failures --------------------------------------------------------------------------


def test_what_a_loop_says_that_is_closed() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RuntimeError) as caught:
        loop.call_soon(print)
    assert remark_on(caught.value) is Remark.OTHER_LOOP


def test_other_errors_are_as_in_earnest() -> None:
    assert remark_on(OperationalError("database is locked")) is Remark.LOCKED
    for error in (
        IntegrityError("UNIQUE constraint failed"),
        ValueError("database is locked"),
        RuntimeError("no"),
        OperationalError(),
    ):
        assert remark_on(error) is None
