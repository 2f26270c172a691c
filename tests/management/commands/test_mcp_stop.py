"""Stopping by command: what is printed, what is refused, and what is true then."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from mcp_app.catalog.registry import mcp
from mcp_app.models import Prompt, Resource, Server, Stop, Tool
from mcp_app.models.stops import Running, Scope
from tests.published import published

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _rows() -> None:
    published(Tool(name="add_order"))
    published(Resource(name="hours", uri="shop://hours", config='{"text": "9"}'))
    published(Prompt(name="greet"))
    Server.objects.create(slug="shop", title="Support desk")


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("mcp_stop", *arguments, stdout=said, stderr=StringIO())
    return said.getvalue().removesuffix("\n")


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as raised:
        run(*arguments)
    return str(raised.value)


@pytest.mark.parametrize(
    ("what", "scope", "said"),
    [
        (["everything"], Scope.EVERYTHING, "Everything"),
        (["changes"], Scope.CHANGES, "All tools that change things"),
        (["server", "shop"], Scope.SERVER, "Support desk"),
        (["tool", "add_order"], Scope.DEFINITION, "add_order"),
        (["resource", "shop://hours"], Scope.DEFINITION, "shop://hours"),
        (["prompt", "greet"], Scope.DEFINITION, "greet"),
    ],
)
def test_stopping_and_starting(what: list[str], scope: str, said: str) -> None:
    told = run("stop", *what, "--reason", "Wrong prices.", "--by", "kim")
    assert told == f"Stopped: {said}. No process serves it any more."
    (row,) = Stop.objects.on()
    found = (row.scope, row.by_name, row.reason, row.running)
    assert found == (scope, "kim", "Wrong prices.", Running.CANCEL)
    listed = run("list")
    for each in (said, "kim", "Wrong prices.", "cancel"):
        assert each in listed
    assert run("start", *what) == f"Started again: {said}."
    assert run("list") == "Nothing is stopped."
    assert said in run("list", "--all")


def test_calls_that_run_may_finish() -> None:
    run("stop", "everything", "--finish")
    row = Stop.objects.get()
    assert row.running == Running.FINISH
    assert row.by_name.endswith(" (mcp_stop)")
    assert "finish" in run("list")


def test_what_stays_stopped_is_named() -> None:
    run("stop", "everything")
    run("stop", "server", "shop")
    run("stop", "tool", "add_order")
    assert run("start", "everything") == (
        "Started again: Everything. Still stopped: Support desk, add_order."
    )
    key = Stop.objects.on().get(scope=Scope.SERVER).pk
    assert run("start", str(key)).startswith("Started again: Support desk.")
    run("stop", "everything")
    assert run("start", "all") == "Started again: add_order, Everything."


def test_stops_of_several_people_end_together() -> None:
    for name in ("kim", "lee"):
        run("stop", "everything", "--by", name)
    assert run("start", "everything") == "Started again: Everything."
    assert not Stop.objects.on().exists()


def test_what_was_deleted_is_found_by_its_name_of_then() -> None:
    run("stop", "tool", "add_order")
    Tool.objects.all().delete()
    assert run("start", "tool", "add_order") == "Started again: add_order."
    published(Tool(name="add_order"))
    run("stop", "tool", "add_order")
    Tool.objects.all().delete()
    # One that was made again is another row.
    published(Tool(name="add_order"))
    assert run("start", "tool", "add_order") == "Started again: add_order."


def test_the_title_of_another_server_is_no_name() -> None:
    one = published(Server(slug="sales", title="support"))
    published(Server(slug="support", title="Help"))
    for slug in ("sales", "support"):
        run("stop", "server", slug)
    assert run("start", "server", "support") == (
        "Started again: Help. Still stopped: support."
    )
    assert Stop.objects.on().get().ref == str(one.pk)


def test_names_that_differ_in_case_only() -> None:
    for name in ("Refund", "refund"):
        published(Tool(name=name))
        run("stop", "tool", name)
    told = run("start", "tool", "refund")
    assert told == "Started again: refund. Still stopped: Refund."
    Tool.objects.all().delete()
    assert "no tool “REFUND”" in refusal("start", "tool", "REFUND")


def test_a_name_that_stops_of_several_rows_hold() -> None:
    row = Tool.objects.get()
    run("stop", "tool", "add_order")
    row.name = "old_order"
    row.save()
    published(row)
    published(Tool(name="add_order"))
    run("stop", "tool", "add_order")
    first, second = Stop.objects.on()
    said = refusal("start", "tool", "add_order")
    assert f"{first.pk} (tool add_order), {second.pk} (tool add_order)" in said
    assert Stop.objects.on().count() == 2
    # What the first holds by its key alone is known by its new name.
    assert run("start", "tool", "old_order").startswith("Started again: add_order.")
    assert list(Stop.objects.on()) == [second]


@pytest.mark.parametrize(
    "reason", ["two\nlines", "zero\u200bwidth", "\udcff", "x" * 501]
)
def test_a_reason_that_cannot_be_kept_as_it_is(reason: str) -> None:
    told = run("stop", "everything", "--reason", reason, "--by", "\udcff\0")
    row = Stop.objects.on().get()
    assert told == (
        "Stopped: Everything. No process serves it any more. The reason was stored"
        f" in a changed form: “{row.reason}”."
    )
    assert row.by_name.endswith(" (mcp_stop)")


@pytest.fixture
def in_code() -> Iterator[None]:
    @mcp.tool("from_code")
    def from_code() -> str:
        return ""

    yield
    del mcp.tools["from_code"]


@pytest.mark.usefixtures("in_code")
def test_what_code_declares_and_has_no_row() -> None:
    assert run("stop", "tool", "from_code").startswith("Stopped: from_code.")
    row = Tool.objects.get(name="from_code")
    assert list(Stop.objects.of(Scope.DEFINITION, row))


def test_the_name_that_clients_see_counts() -> None:
    row = Tool.objects.get()
    row.name = "renamed"
    row.save()
    run("stop", "tool", "add_order")
    assert Stop.objects.get().ref == str(row.pk)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["stop", "tool", "add_ordr"], "no tool “add_ordr”. Similar names: add_order."),
        (["stop", "tool", "order"], "Similar names: add_order."),
        (["stop", "server", "shp"], "no server “shp”. Similar names: shop."),
        (["stop", "everthing"], "Did you mean “everything”?"),
        (["stop", "tool"], "Name the tool"),
        (["stop", "everything", "shop"], "takes no name, but you gave “shop”"),
        (["stop", "tool", "\udcff"], "no tool “⟦U+DCFF⟧”"),
        (["stop", "tool", "a\0b"], "no tool “a⟦U+0000⟧b”"),
        (["stop", "server", "\udcff\0"], "no server “⟦U+DCFF⟧⟦U+0000⟧”"),
        (["stop", "everything", "\udcff"], "you gave “⟦U+DCFF⟧”"),
        (["start", "resource", "\udcff\0"], "no resource “⟦U+DCFF⟧⟦U+0000⟧”"),
        (["start", "everything"], "It is not stopped."),
        (["start", "tool", "add_order"], "It is not stopped."),
        (["start", "4711"], "There is no active stop 4711."),
        (["start", "all"], "It is not stopped."),
        (["start", "al"], "“al” is none of: "),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    assert said in refusal(*arguments)
    assert not Stop.objects.exists()


def test_a_database_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object, **__: object) -> None:
        raise OperationalError("The server is gone.")

    monkeypatch.setattr("mcp_app.invalidation.workers.stop", away)
    said = refusal("stop", "everything")
    assert "The server is gone." in said
    assert "It is not certain" in said
