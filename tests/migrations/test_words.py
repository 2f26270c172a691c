"""Configs that were written before query and http had the words of Django."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Final

import pytest
from django.db import connection
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.loader import MigrationLoader

from mcp_app.models import State, Tool
from tests.kinds.query import shop
from tests.published import published

words: Final[Any] = import_module("mcp_app.migrations.0011_words")

LISTED: Final = {"path": "suppliers", "fields": ["code"], "most": 5}
ROWS: Final[Any] = {
    **{"model": "drill.Order", "most": 30, "order": ["-customer", "customer.name"]},
    "fields": ["customer"],
    "filters": [
        {"path": "customer.country", "is": "is", "parameter": "country"},
        {"path": "state", "is": "one_of", "value": ["open"]},
        {"path": ["number", "note"], "is": "begins", "parameter": "text"},
        {"path": "number", "is": "is_any_case", "value": "a"},
    ],
    "lists": [
        {**LISTED, "filters": [{"path": "name", "is": "contains", "value": "a"}]}
    ],
}
GROUPS: Final[Any] = {
    **ROWS,
    **{"answer": "groups", "by": ["state", {"path": "created", "each": "month"}]},
    "measures": [
        {"do": "average", "path": "total", "as": "mean"},
        {"do": "least", "path": "due", "as": "first"},
        {"do": "greatest", "path": "due", "as": "last"},
    ],
    "filters": [
        {"path": "total", "is": "least", "value": 1},
        {"path": "total", "is": "most", "parameter": "most"},
        {"path": "note", "is": "empty", "value": False},
    ],
}
PAIR: Final = {"name": "a", "value": "b", "as": "commas"}
CALL: Final = {"site": "a", "query": [PAIR], "body": {"form": [PAIR]}, "most": 5}


def test_each_word_has_a_new_one() -> None:
    rows, groups = (words.new_config("query", each) for each in (ROWS, GROUPS))
    assert [*map(shop.problems, (rows, groups))] == [[], []]
    asked = [(each["path"], each["lookup"]) for each in rows["filters"]]
    assert asked == [
        ("customer.country.pk", "exact"),
        ("state", "in"),
        (["number", "note"], "istartswith"),
        ("number", "iexact"),
    ]
    assert (rows["limit"], rows["order"]) == (30, ["-customer.pk", "customer.name"])
    assert rows["lists"][0]["limit"] == 5
    assert rows["lists"][0]["filters"][0]["lookup"] == "icontains"
    assert [each["lookup"] for each in groups["filters"]] == ["gte", "lte", "isempty"]
    assert [each["aggregate"] for each in groups["measures"]] == ["avg", "min", "max"]
    # They were of the rows that it gave before.
    assert groups.keys().isdisjoint({"order", "limit"})
    sums = [{"do": "count", "as": "n"}, {"do": "sum", "path": "total", "as": "total"}]
    sorted_groups = {**GROUPS, "by": ["state"], "measures": sums}
    assert words.new_config("query", sorted_groups)["order"] == ["-n"]
    by_date = {**sorted_groups, "by": ["state", "due"]}
    assert "order" not in words.new_config("query", by_date)
    pair = {"name": "a", "value": "b", "style": "commas"}
    call = {"site": "a", "query": [pair], "body": {"form": [pair]}, "limit": 5}
    assert words.new_config("http", CALL) == call
    # What has the new words is left as it is: in them a relation is itself.
    of_rows = {**rows, "order": ["customer"]}
    for kind, new in ("query", of_rows), ("query", groups), ("http", call):
        assert words.new_config(kind, new) == new


@pytest.mark.parametrize(
    "config",
    [
        [1],
        {"model": 3, "filters": [3, {"is": []}], "order": 3, "lists": ["a", {}]},
        {"answer": "groups", "measures": [3, {}, {"do": "sum"}]},
    ],
)
def test_what_is_no_config_stays_a_draft(config: Any) -> None:
    assert words.new_config("query", config) == config


@pytest.mark.django_db
def test_rows_keep_their_states() -> None:
    for name, (kind, config) in {
        "published": ("query", ROWS),
        "changed": ("http", CALL),
        "unpublished": ("query", GROUPS),
        "text": ("text", {"most": 1}),
    }.items():
        row = Tool(name=name, kind=kind, config=json.dumps(config))
        row.save() if name == "unpublished" else published(row)
    changed = Tool.objects.get(name="changed")
    changed.title = "Another"
    changed.save()
    loader = MigrationLoader(connection)
    apps = loader.project_state(("mcp_app", "0012_examples")).apps
    # What a hand wrote is left as it is.
    versions: Any = apps.get_model("mcp_app", "DefinitionVersion")
    first = versions.objects.first()
    odd = versions.objects.create(
        **{each.attname: getattr(first, each.attname) for each in first._meta.fields}
        | {"id": None, "number": 99, "content": "[1]"}
    )
    words.write_new_words(apps, connection.schema_editor())
    for row in Tool.objects.all():
        state = "published" if row.name == "text" else row.name
        assert row.state == State(state)
        if state == "published":
            assert row.published is not None
            assert row.working_hash() == row.content_hash == row.published.hash
        if row.published is not None and row.name != "text":
            assert row.published.read()["config"] == json.loads(row.config)
            assert '"most"' not in row.config
    assert versions.objects.get(pk=odd.pk).content == "[1]"


@pytest.mark.django_db
def test_there_is_no_way_back_with_configs_in_the_new_words() -> None:
    Tool.objects.create(name="shown", kind="text")
    apps = MigrationLoader(connection).project_state(("mcp_app", "0011_words")).apps
    (operation,) = words.Migration.operations
    operation.reverse_code(apps, connection.schema_editor())
    Tool.objects.create(name="rows", kind="query")
    with pytest.raises(IrreversibleError, match="of 'rows'"):
        operation.reverse_code(apps, connection.schema_editor())
