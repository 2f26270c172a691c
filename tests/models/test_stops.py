"""Stops: independent rows, which say who, when and why."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from mcp_app.models import (
    Change,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Stop,
    Tool,
)
from mcp_app.models.stops import STOP, By, Running, Scope, is_stopped, stop_matcher
from tests.published import published, start, stopped

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

KIM = By("kim", "7")
LEE = By("lee", "8")


def said() -> list[tuple[str, str]]:
    return list(Change.objects.order_by("pk").values_list("kind", "ref"))


@pytest.fixture
def tool() -> Tool:
    made = Tool.objects.create(name="add_order")
    Change.objects.all().delete()
    return made


def test_a_stop_is_a_change_of_its_transaction(tool: Tool) -> None:
    made = Stop.objects.make(Scope.DEFINITION, tool, by=KIM, reason="Wrong prices.")
    assert said() == [(STOP, f"tool:{tool.pk}")]
    assert (made.kind, made.ref, made.what) == ("tool", str(tool.pk), "add_order")
    assert (made.by_name, made.by_key, made.reason) == ("kim", "7", "Wrong prices.")
    assert made.cancels


@pytest.mark.parametrize("scope", [Scope.EVERYTHING, Scope.CHANGES])
def test_what_names_no_row(scope: Scope) -> None:
    made = Stop.objects.make(scope, by=KIM, running=Running.FINISH)
    assert said()[-1] == (STOP, f"{scope.value}:")
    assert not made.cancels
    assert str(made) == str(scope.label)


def test_two_people_stop_the_same_thing(tool: Tool) -> None:
    first = Stop.objects.make(Scope.DEFINITION, tool, by=KIM)
    second = Stop.objects.make(Scope.DEFINITION, tool, by=LEE)
    assert list(Stop.objects.on()) == [first, second]
    Change.objects.all().delete()
    assert Stop.objects.end([first.pk], by=LEE) == [first]
    assert list(Stop.objects.on()) == [second]
    # The second of two who end it finds that it is done, and says nothing.
    count = Change.objects.count()
    assert Stop.objects.end([first.pk, 4711], by=KIM) == []
    assert Change.objects.count() == count
    first.refresh_from_db()
    assert (first.ended_by_name, first.ended is not None) == ("lee", True)


def test_a_stop_outlives_who_made_it_and_what_it_stops(tool: Tool) -> None:
    user = User.objects.create(username="ana")
    made = Stop.objects.make(Scope.DEFINITION, tool, by=By("ana", str(user.pk)))
    user.delete()
    tool.delete()
    made.refresh_from_db()
    assert (made.by_name, made.what) == ("ana", "add_order")


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"running": "wait"}, "wait"),
        ({"scope": "all"}, "all"),
        ({"scope": Scope.SERVER}, "server"),
        ({"scope": Scope.DEFINITION}, "definition"),
    ],
)
def test_what_cannot_be_a_stop(columns: dict[str, Any], rule: str) -> None:
    given = {"scope": Scope.EVERYTHING, "by": KIM, **columns}
    with pytest.raises(ValidationError, match=rule):
        Stop.objects.make(**given)
    assert not Stop.objects.exists()
    assert not Change.objects.filter(kind=STOP).exists()


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("a\u202eb", "ab"),
        ("zero\u200bwidth", "zerowidth"),
        (" two\r\nlines,\ta tab\u2028and\0 more ", "two lines, a tab and more"),
        ("half \udcff", "half"),
        ("x" * 600, "x" * 499 + "…"),
    ],
)
def test_nothing_stays_on_because_of_its_reason(written: str, kept: str) -> None:
    made = Stop.objects.make(Scope.EVERYTHING, by=By(written), reason=written)
    made.refresh_from_db()
    assert (made.reason, made.by_name) == (kept, kept.replace("x" * 245, "", 1))
    Stop.objects.end([made.pk], by=By(written))
    made.refresh_from_db()
    assert made.ended_by_name == made.by_name


def test_a_stop_holds_its_row_and_what_is_called_so(tool: Tool) -> None:
    published(tool)
    tool.name = "renamed"
    tool.save()
    made = Stop.objects.make(Scope.DEFINITION, tool, by=KIM)
    # It is what clients call it that counts, not its working copy.
    assert (made.served, made.what, made.holds(tool)) == ("add_order",) * 2 + (True,)
    draft = Tool.objects.create(name="add_order")
    tool.delete()
    again = published(Tool(name="add_order_2"))
    assert not made.holds(again)
    again.name = "add_order"
    assert not made.holds(again)
    published(again)
    assert made.holds(again)
    assert made.holds(draft)
    prompt = Prompt.objects.create(name="add_order")
    assert not made.holds(prompt)


def test_a_row_of_another_scope(tool: Tool) -> None:
    server = Server.objects.get(slug="default")
    for scope, row in (
        (Scope.SERVER, tool),
        (Scope.DEFINITION, server),
        (Scope.EVERYTHING, server),
        (Scope.CHANGES, tool),
    ):
        with pytest.raises(ValidationError, match="cannot name"):
            Stop.objects.make(scope, row, by=KIM)


def test_which_are_wide(tool: Tool) -> None:
    Stop.objects.make(Scope.DEFINITION, tool, by=KIM)
    everything = Stop.objects.make(Scope.EVERYTHING, by=KIM)
    server = Server.objects.get(slug="default")
    one = Stop.objects.make(Scope.SERVER, server, by=KIM)
    assert list(Stop.objects.on().wide()) == [everything, one]
    assert list(Stop.objects.of(Scope.SERVER, server)) == [one]
    assert one.what == str(server)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        (Tool(name="add_order"), {"name": "add_order"}),
        (Prompt(name="greet"), {"name": "greet"}),
        (Resource(name="r", uri="shop://a"), {"name": "r", "uri": "shop://a"}),
        (
            ResourceTemplate(name="t", uri_template="shop://{a}"),
            {"name": "t", "uri_template": "shop://{a}"},
        ),
        (Server(slug="shop"), {"slug": "shop"}),
    ],
)
def test_database_and_python_agree_on_the_held(row: Any, named: dict[str, str]) -> None:
    """By its key, and by what clients call it should it be deleted and made again."""
    model = type(row)

    def held() -> list[Any]:
        is_held = stop_matcher(Stop.objects.on())
        rows = list(model.objects.filter(is_stopped(model)))
        assert rows == [each for each in model.objects.all() if is_held(each)]
        return rows

    row.pk = None
    row.save(force_insert=True)
    assert held() == []
    stopped(row)
    assert held() == [row]
    row.delete()
    again = model.objects.create(**named)
    assert held() == [again]
    published(again)
    assert held() == [again]
    assert Stop.objects.of_rows([again]) == list(Stop.objects.on())
    start(again)
    assert held() == []


def test_what_was_renamed_is_held_by_its_key_and_no_namesake(tool: Tool) -> None:
    published(tool)
    stopped(tool)
    tool.name = "other"
    tool.save()
    published(tool)
    Tool.objects.create(name="someone_else")
    assert list(Tool.objects.filter(is_stopped(Tool))) == [tool]
    # A working copy that is called so is not what clients call so.
    other = published(Tool(name="more"))
    other.name = "add_order"
    other.save()
    assert list(Tool.objects.filter(is_stopped(Tool))) == [tool]


def test_many_are_stopped_with_few_statements(
    tool: Tool, django_assert_max_num_queries: Any
) -> None:
    rows = [tool, *(Tool(name=f"t{number}") for number in range(600))]
    Tool.objects.bulk_create(rows[1:])
    rows = list(Tool.objects.select_related("published"))
    with django_assert_max_num_queries(16):
        made = Stop.objects.make_many(rows, by=KIM)
    assert said() == [(STOP, "tool:*")]
    assert {each.what for each in made} == {row.name for row in rows}
    assert Tool.objects.filter(is_stopped(Tool)).count() == len(rows) == 601
    with django_assert_max_num_queries(6):
        Stop.objects.end([each.pk for each in Stop.objects.on()], by=LEE)
    assert not Stop.objects.on().exists()
