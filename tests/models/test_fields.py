from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from mcp_app.models import Prompt, Resource, Server, Tool
from mcp_app.models.fields import (
    DigestField,
    JSONTextField,
    content_of,
    demand_problems,
    digest,
    put_content,
    split_words,
    tag_problems,
)


@pytest.mark.django_db
def test_names_differ_in_case_and_in_trailing_blanks() -> None:
    for name in ("a", "A", "a ", "á"):
        Tool.objects.create(name=name)
    assert Tool.objects.get(name="a ").name == "a "
    assert Tool.objects.filter(name="a").count() == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        Tool.objects.create(name="A")


@pytest.mark.django_db
def test_json_is_kept_as_it_was_given() -> None:
    given = '{"z": 1, "a": {"b":2,  "a": 18446744073709551616}}'
    tool = Tool.objects.create(name="a", input_schema=given)
    assert Tool.objects.get(pk=tool.pk).input_schema == given


@pytest.mark.parametrize(
    ("shape", "text", "said"),
    [
        ("object", "{", "not JSON"),
        ("object", '{"a": 1, "a": 2}', "twice"),
        ("object", '{"a": NaN}', "NaN"),
        ("object", '{"a": 1e400}', "1e400"),
        ("object", '{"a": "\\ud800"}', "surrogate"),
        ("object", '{"a": "\ud800"}', "surrogate"),
        ("object", '{"a": "\\u0000"}', "NUL"),
        *(("object", text, "JSON object") for text in ("[1]", "null")),
        ("array", "{}", "JSON array"),
        *(("object", text, None) for text in ("", "{}", '{"a": "NUL"}')),
        ("object", '{"a": "\\\\u0000"}', None),
        *(("array", "[]", None), ("any", "null", None), ("any", "3", None)),
    ],
)
def test_what_is_no_strict_json_is_refused(
    shape: Any, text: str, said: str | None
) -> None:
    problem = JSONTextField(shape=shape).problem(text)
    assert problem is None if said is None else said in str(problem)


@pytest.mark.django_db
def test_bad_json_is_never_written() -> None:
    with (
        pytest.raises(ValueError, match=r"Tool\.config: .*not JSON"),
        transaction.atomic(),
    ):
        Tool.objects.create(name="a", config="{")
    tool = Tool.objects.create(name="a")
    with pytest.raises(ValueError, match="JSON object"), transaction.atomic():
        Tool.objects.filter(pk=tool.pk).update(config="[]")


@pytest.mark.django_db
def test_the_digest_follows_its_text() -> None:
    resource = Resource.objects.create(name="a", uri="x:" + "y" * 5000)
    assert resource.uri_digest == digest(resource.uri.encode())
    resource.uri = "x:z"
    resource.save()
    resource.refresh_from_db()
    assert resource.uri_digest == digest(b"x:z")
    # Long texts that differ at their end are different.
    Resource.objects.create(name="a", uri="x:" + "y" * 5000)
    Resource.objects.create(name="a", uri="x:" + "y" * 5000 + "z")
    with pytest.raises(IntegrityError), transaction.atomic():
        Resource.objects.create(name="a", uri="x:" + "y" * 5000)


@pytest.mark.parametrize(
    "field", [DigestField(of="uri"), DigestField(unique=True), JSONTextField()]
)
def test_migrations_make_the_field_again(field: DigestField | JSONTextField) -> None:
    _, _, positional, options = field.deconstruct()
    again = type(field)(*positional, **options)
    assert again.deconstruct() == field.deconstruct()


@pytest.mark.django_db
def test_the_collation_is_exact_where_the_usual_one_is_not() -> None:
    with connection.cursor() as cursor:
        columns = connection.introspection.get_table_description(
            cursor, Tool._meta.db_table
        )
    collations = {column.name: column.collation for column in columns}
    usual = {None}
    exact = {"mysql": {"utf8mb4_nopad_bin", "utf8mb4_0900_bin"}}
    assert collations["name"] in exact.get(connection.vendor, usual)
    assert collations["title"] in usual


# -- demands ---------------------------------------------------------------------------


def test_groups_that_would_be_read_as_others() -> None:
    for groups in (" ", "\n", " a", "a\nb ", "a\n \nb", "\u00a0"):
        columns = [column for column, _ in demand_problems(Tool(groups=groups))]
        assert columns == ["groups"]
    for groups in ("", "a", "a b\nc", "a\n"):
        assert list(demand_problems(Tool(groups=groups))) == []


# -- checking --------------------------------------------------------------------------


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        Prompt(name="a b", tags="a/b, c/d", icons="[1]").clean()
    found = caught.value.message_dict
    counts = {field: len(said) for field, said in found.items()}
    assert counts == {"name": 1, "tags": 2, "icons": 1}


def test_json_of_a_column() -> None:
    row = Tool(name="a", config='{"a": [1]}', input_schema="{")
    assert row.json("config") == {"a": [1]}
    assert row.json("input_schema") is None
    assert row.json("icons") is None


def test_line_breaks_belong_into_descriptions_only() -> None:
    Tool(name="a", description="a\nb").clean()
    with pytest.raises(ValidationError) as caught:
        Tool(name="a", title="a\nb").clean()
    assert set(caught.value.message_dict) == {"title"}


# -- listings --------------------------------------------------------------------------


def test_words() -> None:
    assert split_words("") == split_words(" , ") == ()
    assert split_words("a") == ("a",)
    assert split_words("b, a") == split_words("b a\n,b") == ("b", "a")


def test_each_bad_tag_is_named() -> None:
    problems = list(tag_problems("fine, n/t, <b>"))
    assert [field for field, _ in problems] == ["tags", "tags"]
    assert "“n/t”" in problems[0][1]
    assert "“<b>”" in problems[1][1]


# -- content ---------------------------------------------------------------------------


COLUMNS = (
    *("name", "title", "timeout", "position"),
    *("read_only", "input_schema", "icons", "config"),
)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({}, {}),
        # What has its default is left out, so that a new column changes no hash.
        ({"name": "", "position": 0, "read_only": None}, {}),
        # Empty is nothing, whatever the default is.
        ({"config": ""}, {}),
        ({"name": "a", "position": 3}, {"name": "a", "position": 3}),
        ({"read_only": False}, {"read_only": False}),
        ({"timeout": 5}, {"timeout": 5.0}),
        ({"input_schema": '{"type":  "object"}'}, {"input_schema": {"type": "object"}}),
        ({"icons": "[]"}, {"icons": []}),
        # A hand in the database.
        ({"input_schema": "{"}, {"input_schema": None}),
    ],
)
def test_of_a_row(columns: dict[str, Any], said: dict[str, Any]) -> None:
    assert content_of(Tool(**columns), COLUMNS) == said


def test_into_a_row_with_defaults_for_what_is_not_named() -> None:
    row = Tool(name="a", title="A", timeout=3.0, position=7, read_only=True, icons="[]")
    put_content(row, COLUMNS, {"name": "b", "input_schema": {"b": 1, "a": [None]}})
    assert (row.name, row.title, row.timeout, row.position) == ("b", "", None, 0)
    assert (row.read_only, row.icons) == (None, "")
    assert row.input_schema == '{"b":1,"a":[null]}'


def test_a_default_that_is_a_word_is_left_out_and_comes_back() -> None:
    row = Server(selection=Server.Selection.ALL)
    assert "selection" not in content_of(row, ("selection",))
    row.selection = Server.Selection.TAGS
    assert content_of(row, ("selection",)) == {"selection": "tags"}
    put_content(row, ("selection",), {})
    assert row.selection == Server.Selection.ALL
