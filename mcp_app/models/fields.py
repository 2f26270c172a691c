"""Columns that all databases compare and keep in the same way."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from django.core.exceptions import ValidationError
from django.db import models

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ProtocolError

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
    """Text whose 'a', 'A' and 'a ' are three values, on MariaDB and MySQL, too.

    Their usual collations ignore case, and the `_bin` ones trailing blanks.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> dict[str, Any]:
        parameters: dict[str, Any] = dict(super().db_parameters(connection))
        if connection.vendor == "mysql":
            mariadb = getattr(connection, "mysql_is_mariadb", False)
            parameters["collation"] = MARIADB_EXACT if mariadb else MYSQL_EXACT
        return parameters


class DigestField(Characters):
    """SHA-256 in hexadecimal; of another column of the row where `of` names one.

    A digest can be unique and indexed where its text is too long for an index.
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
        problem = self.problem(value)
        if problem:
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
            value = parse(text)
        except ValueError as error:
            return str(error)
        if not isinstance(value, _SHAPES[self.shape]):
            return f"This must be a JSON {self.shape}."
        return None


def parse(text: str) -> Any:
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
    """Return the SHA-256 of bytes, or of a text in UTF-8, in hexadecimal."""
    encoded = content.encode() if isinstance(content, str) else content
    return sha256(encoded).hexdigest()
