"""Columns that all databases compare and keep in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

from django.core.exceptions import ValidationError
from django.db import models

from mcp_app.interface.rules import (
    permission_problem,
    tag_problem,
    text_problem,
    visible,
)
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor
    from django.db.backends.ddl_references import Statement


# -- demands ---------------------------------------------------------------------------
# The columns that say who may use a definition, or a server.
#
# `groups` has the names of Django's groups, one in each line: a user is in one of them.
# `rule` is the key of a function that code registered (`mcp.rule`).

DEMANDS: Final = ("permission", "groups", "rule")


class Demanding(Protocol):
    """A row with these columns."""

    permission: str
    groups: str
    rule: str


def group_names(text: str) -> tuple[str, ...]:
    names = tuple(line for line in text.split("\n") if line)
    # A text that is only line breaks names a group that nobody can be in.
    return names if names or not text else (text,)


def group_problem(name: str) -> str | None:
    if split_lines(name) == (name,):
        return None
    return (
        f"The group “{visible(name)}” cannot be chosen, because its name is empty,"
        " has a line break, or begins or ends with a blank. Give the group another"
        " name first."
    )


def demand_problems(row: Demanding) -> Iterator[tuple[str, str]]:
    """Yield (column, sentence) for each wrong value of these columns."""
    if problem := permission_problem(row.permission):
        yield "permission", problem
    for name in group_names(row.groups):
        if problem := text_problem(name) or group_problem(name):
            yield "groups", problem
    if problem := text_problem(row.rule):
        yield "rule", problem


# -- checking --------------------------------------------------------------------------
# Rows that say, field by field, why they cannot be saved.


class CheckedRow(models.Model):
    """`full_clean()` shows a row's `problems()` and `collisions()` at their fields."""

    ONE_LINE: tuple[str, ...] = ("title",)
    MANY_LINES: tuple[str, ...] = ("description",)

    class Meta:
        abstract = True

    def clean(self) -> None:
        super().clean()
        errors: dict[str, list[str]] = {}
        for field, problem in chain(self.problems(), self.collisions()):
            errors.setdefault(field, []).append(problem)
        if errors:
            raise ValidationError(errors)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, sentence) for each rule that the row breaks."""
        yield from self._hidden_characters(self.ONE_LINE, lines=False)
        yield from self._hidden_characters(self.MANY_LINES, lines=True)

    def collisions(self) -> Iterator[tuple[str, str]]:
        """Yield (field, sentence) for each value that another row has; by queries."""
        yield from ()

    def json(self, field: str) -> Any:
        """Return a JSON column's value; None if it is empty or unreadable."""
        column = self._meta.get_field(field)
        text = getattr(self, field)
        if not text or (isinstance(column, JSONTextField) and column.problem(text)):
            return None
        return parse_json(text)

    def json_problems(
        self, field: str, read: Callable[[Any], object]
    ) -> Iterator[tuple[str, str]]:
        value = self.json(field)
        if value is None:
            return
        try:
            read(value)
        except ValueError as error:
            yield field, str(error)

    def _hidden_characters(
        self, fields: Iterable[str], *, lines: bool
    ) -> Iterator[tuple[str, str]]:
        for field in fields:
            if problem := text_problem(getattr(self, field), lines=lines):
                yield field, problem


# -- fields ----------------------------------------------------------------------------


if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    Characters: TypeAlias = models.CharField[str, str]
    Text: TypeAlias = models.TextField[str, str]
else:
    # Django's classes take no type arguments when they run.
    Characters, Text = models.CharField, models.TextField

MYSQL_EXACT = "utf8mb4_0900_bin"
MARIADB_EXACT = "utf8mb4_nopad_bin"

_SHAPES: dict[str, type] = {"object": dict, "array": list, "any": object}


class ExactCharField(Characters):
    """Text whose 'a', 'A' and 'a ' are three values, on MariaDB and MySQL, too."""

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        parameters: dict[str, Any] = dict(super().db_parameters(connection))
        if connection.vendor == "mysql":
            mariadb = getattr(connection, "mysql_is_mariadb", False)
            parameters["collation"] = MARIADB_EXACT if mariadb else MYSQL_EXACT
        return parameters


class DigestField(Characters):
    """SHA-256 in hexadecimal; if `of` names another column, the digest of that.

    A digest can be unique and indexed, even if its text is too long for an index.
    """

    def __init__(self, *positional: Any, of: str = "", **options: Any) -> None:
        self.of = of
        options["max_length"] = 64
        if of:
            options.update(editable=False, blank=True)
        super().__init__(*positional, **options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, positional, options = super().deconstruct()
        del options["max_length"]
        if self.of:
            del options["editable"], options["blank"]
            options["of"] = self.of
        return name, path, list(positional), options

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        if self.of:
            text = getattr(model_instance, self.of)
            setattr(model_instance, self.attname, digest(text))
        return super().pre_save(model_instance, add)


class JSONTextField(Text):
    """Strict JSON, kept as the text that was given; "" stands for none.

    PostgreSQL's `jsonb` would change the order of keys, which clients see.  Text
    that is no strict JSON, or not of the given shape, is never written.
    """

    def __init__(
        self,
        *positional: Any,
        shape: Literal["object", "array", "any"] = "object",
        **options: Any,
    ) -> None:
        self.shape = shape
        super().__init__(*positional, **options)

    def deconstruct(self) -> tuple[str, str, list[Any], dict[str, Any]]:
        name, path, positional, options = super().deconstruct()
        return name, path, list(positional), {**options, "shape": self.shape}

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        if problem := self.problem(value):
            raise ValidationError(problem, code="json")

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        if isinstance(value, str) and (problem := self.problem(value)):
            raise ValueError(f"{self.model.__name__}.{self.name}: {problem}")
        return super().get_db_prep_save(value, connection)

    def problem(self, text: str) -> str | None:
        """Say why a text cannot be stored here."""
        if not text:
            return None
        try:
            value = parse_json(text)
        except ValueError as error:
            return str(error)
        if not isinstance(value, _SHAPES[self.shape]):
            return f"This must be a JSON {self.shape}."
        return None


def parse_json(text: str) -> Any:
    """Read strict JSON; ValueError says what is wrong with the text."""
    try:
        body = text.encode()
        value = jsonrpc.read(body)
    except UnicodeEncodeError:
        raise ValueError("The text has half of a surrogate pair.") from None
    except ProtocolError as error:
        raise ValueError(error.message.replace("The body", "The text")) from None
    if jsonrpc.holds_nul(body):
        raise ValueError("The text has the character NUL (U+0000); remove it.")
    return value


def digest(content: bytes | str) -> str:
    encoded = content.encode() if isinstance(content, str) else content
    return sha256(encoded).hexdigest()


# -- indexes ---------------------------------------------------------------------------
# An index of some rows, if the database can have one.


class PartialIndex(models.Index):
    """An index of the rows that meet a condition; MySQL and MariaDB index all rows."""

    def __init__(self, *, rows: models.Q, **options: Any) -> None:
        self.rows = rows
        super().__init__(**options)

    def deconstruct(self) -> Any:
        path, expressions, options = super().deconstruct()
        return path, expressions, {**options, "rows": self.rows}

    def create_sql(
        self,
        model: type[models.Model],
        schema_editor: BaseDatabaseSchemaEditor,
        using: str = "",
        **options: Any,
    ) -> Statement:
        index = models.Index(fields=self.fields, name=self.name, condition=self.rows)
        return index.create_sql(model, schema_editor, using, **options)


# -- listings --------------------------------------------------------------------------
# Lists of words in one text column: tags, and names of authentication methods.

_SEPARATORS = re.compile(r"[\s,]+")


def split_words(text: str) -> tuple[str, ...]:
    """Split at spaces and commas, keeping the order and the first of each."""
    return tuple(dict.fromkeys(word for word in _SEPARATORS.split(text) if word))


def split_lines(text: str) -> tuple[str, ...]:
    """Return the lines that say something: names that may have spaces."""
    stripped = (line.strip() for line in text.split("\n"))
    return tuple(dict.fromkeys(line for line in stripped if line))


def tag_problems(tags: str) -> Iterator[tuple[str, str]]:
    """Yield ("tags", sentence) for each word that cannot be a tag."""
    for tag in split_words(tags):
        if problem := tag_problem(tag):
            yield "tags", problem


# -- content ---------------------------------------------------------------------------
# The columns of a row that are published together, as JSON.


def content_of(row: models.Model, columns: Iterable[str]) -> JsonObject:
    """Return columns that differ from their default by name, JSON texts as values."""
    content: JsonObject = {}
    for column in _columns_of(row, columns):
        value = getattr(row, column.attname)
        if value in ("", None) or value == column.get_default():
            continue
        if not isinstance(column, JSONTextField):
            # As it comes back from the database: a whole number of seconds is a float.
            content[column.name] = column.to_python(value)
        else:
            # Only a change by hand in the database can have made it unreadable.
            unreadable = column.problem(value)
            content[column.name] = None if unreadable else parse_json(value)
    return content


def put_content(
    row: models.Model, columns: Iterable[str], content: Mapping[str, Any]
) -> None:
    """Set columns to what `content_of` gave, and the others to their defaults."""
    for column in _columns_of(row, columns):
        value = column.get_default()
        if column.name in content:
            value = content[column.name]
            if isinstance(column, JSONTextField):
                value = jsonrpc.write(value).decode()
        setattr(row, column.attname, value)


def _columns_of(
    row: models.Model, columns: Iterable[str]
) -> Iterator[models.Field[Any, Any]]:
    for name in columns:
        yield cast("models.Field[Any, Any]", row._meta.get_field(name))
