"""Two who publish at once, where transactions wait for each other's rows.

`tests.test_databases` runs it on the databases that have such locks.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Final

import pytest
from django.db import OperationalError, connection, connections, transaction

from mcp_app.models import DefinitionVersion, Tool
from mcp_app.publishing import bundle, publication
from mcp_app.publishing.publication import OutOfDate, unpublish
from tests.published import published
from tests.publishing.bundle.content import REGISTRY
from tests.publishing.test_publication import publish, tool

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]

PATIENCE_S: Final = 60
TOLD: Final = "Somebody else changed something here at the same time. Check it again."


def done(act: Callable[[], object]) -> str:
    try:
        with transaction.atomic():
            act()
    except OutOfDate as refused:
        return refused.message
    finally:
        connections.close_all()
    return "done"


def at_once(*acts: Callable[[], object]) -> list[str]:
    with ThreadPoolExecutor(len(acts)) as pool:
        return sorted(pool.map(done, acts))


def held(row: Tool) -> Tool:
    """Wait for this row alone.

    Publishing may look at its neighbours, too, where the database finds that cheaper
    than an index: then the second would wait for the first before it holds anything.
    """
    return Tool.objects.select_for_update().get(pk=row.pk)


def roll_back(row: Tool) -> object:
    version = DefinitionVersion.objects.of(row).get(number=1)
    return publication.roll_back(row, version, REGISTRY, author=None, number=1)


def is_locked(row: Tool) -> bool:
    """Whether another connection would have to wait for the row."""
    try:
        with transaction.atomic():
            Tool.objects.select_for_update(nowait=True).get(pk=row.pk)
    except OperationalError:
        return True
    finally:
        connections.close_all()
    return False


@pytest.mark.parametrize(
    "act", [partial(publish, number=1), roll_back, partial(unpublish, number=1)]
)
def test_a_row_is_locked_before_anything_is_decided(
    act: Callable[[Tool], object],
) -> None:
    """Not only when it is written.

    Two versions cannot have one number, but nothing else keeps somebody from taking a
    version off the lists that was published a moment ago.
    """
    row = published(tool())
    row.title = "Hours"
    row.save()
    locked: list[bool] = []

    def look(execute: Callable[..., object], sql: str, *more: object) -> object:
        result = execute(sql, *more)
        if Tool._meta.db_table in sql and not locked:
            with ThreadPoolExecutor(1) as pool:
                locked.append(pool.submit(is_locked, row).result(PATIENCE_S))
        return result

    with connection.execute_wrapper(look):
        act(row)
    assert locked == [True]


def test_of_two_who_wait_for_each_other_one_is_told() -> None:
    """One publishes a and b, the other b and a."""
    a, b = tool("a"), tool("b")
    both = Barrier(2)

    def publishes(first: Tool, second: Tool) -> None:
        held(first)
        both.wait(PATIENCE_S)
        publish(first)
        publish(second)

    said = at_once(partial(publishes, a, b), partial(publishes, b, a))
    assert said == [TOLD, "done"]
    served = Tool.objects.filter(published__number=1).order_by("name")
    assert [each.name for each in served] == ["a", "b"]


def test_an_import_that_a_publication_waits_for() -> None:
    a, b = tool("a"), tool("b")
    file = bundle.read_bundle(bundle.export_bundle([a, b]))
    Tool.objects.update(description="Tells more.")
    looked_at = bundle.compare_bundle(file, REGISTRY).looked_at
    both = Barrier(2)

    def publishes() -> None:
        row = held(b)
        both.wait(PATIENCE_S)
        publish(row)
        publish(Tool.objects.get(name="a"))

    def imports() -> None:
        held(a)
        both.wait(PATIENCE_S)
        bundle.import_bundle(file, REGISTRY, author=None, looked_at=looked_at)

    assert at_once(publishes, imports) == [TOLD, "done"]
    # All of one, and nothing of the other.
    rows = Tool.objects.values_list("description", "published__number").distinct()
    assert rows.get() in {("Tells more.", 1), ("Opening hours.", None)}
