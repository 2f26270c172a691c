from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from mcp_app.models import Once, Resource, Tool
from mcp_app.models.fields import DigestField, JSONTextField, digest, parse


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
    ("text", "said"),
    [
        ("{", "not JSON"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e400}', "1e400"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "\ud800"}', "surrogate"),
        ('{"a": "\\u0000"}', "NUL"),
        ("[1]", "JSON object"),
    ],
)
def test_what_is_no_strict_json_is_refused(text: str, said: str) -> None:
    problem = JSONTextField().problem(text)
    assert problem is not None
    assert said in problem


@pytest.mark.parametrize("text", ["", "{}", '{"a": "\\\\u0000"}', '{"a": "NUL"}'])
def test_strict_json_is_fine(text: str) -> None:
    assert JSONTextField().problem(text) is None


@pytest.mark.parametrize(
    ("shape", "text", "fine"),
    [
        ("array", "[]", True),
        ("array", "{}", False),
        ("object", "null", False),
        ("any", "null", True),
        ("any", "3", True),
    ],
)
def test_shapes(shape: str, text: str, fine: bool) -> None:
    field = JSONTextField(shape=shape)  # type: ignore[arg-type]
    assert (field.problem(text) is None) is fine


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


def test_the_form_of_a_field_shows_the_problem() -> None:
    with pytest.raises(ValidationError, match="not JSON"):
        JSONTextField().clean("{", None)


@pytest.mark.django_db
def test_the_digest_follows_its_text() -> None:
    resource = Resource.objects.create(name="a", uri="x:" + "y" * 5000)
    assert resource.uri_digest == digest(resource.uri.encode())
    resource.uri = "x:z"
    resource.save()
    resource.refresh_from_db()
    assert resource.uri_digest == digest(b"x:z")


@pytest.mark.django_db
def test_long_texts_that_differ_at_the_end_are_different() -> None:
    Resource.objects.create(name="a", uri="x:" + "y" * 5000)
    Resource.objects.create(name="a", uri="x:" + "y" * 5000 + "z")
    with pytest.raises(IntegrityError), transaction.atomic():
        Resource.objects.create(name="a", uri="x:" + "y" * 5000)


@pytest.mark.django_db
def test_any_json_round_trips() -> None:
    Once.objects.create(round_trip="0" * 64, key="1" * 64, result="3", created_ms=1)
    assert parse(Once.objects.get().result) == 3


@pytest.mark.parametrize(
    "field", [DigestField(of="uri"), DigestField(unique=True), JSONTextField()]
)
def test_migrations_can_make_the_field_again(
    field: DigestField | JSONTextField,
) -> None:
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
