"""Rows that say, field by field, why they cannot be saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from mcp_app.interface.rules import text_problem
from mcp_app.models.fields import JSONTextField, parse


class CheckedRow(models.Model):
    """`problems()` is the row's own rules; `full_clean()` shows them at the fields.

    They read nothing from the database; `collisions()` do.
    """

    ONE_LINE: tuple[str, ...] = ("title",)
    MANY_LINES: tuple[str, ...] = ("description",)

    class Meta:
        abstract = True

    def clean(self) -> None:
        """Refuse a row that has problems, each at its field."""
        super().clean()
        found: dict[str, list[str]] = {}
        for field, problem in chain(self.problems(), self.collisions()):
            found.setdefault(field, []).append(problem)
        if found:
            raise ValidationError(found)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (field, sentence) for each rule that the row breaks."""
        yield from self._hidden_characters(self.ONE_LINE, lines=False)
        yield from self._hidden_characters(self.MANY_LINES, lines=True)

    def collisions(self) -> Iterator[tuple[str, str]]:
        """Yield (field, sentence) for each value that another row has; asks for it."""
        yield from ()

    def json(self, field: str) -> Any:
        """Return a JSON column's value; None where it is empty or unreadable."""
        column = self._meta.get_field(field)
        text = getattr(self, field)
        if not text or (isinstance(column, JSONTextField) and column.problem(text)):
            return None
        return parse(text)

    def json_problems(
        self, field: str, read: Callable[[Any], object]
    ) -> Iterator[tuple[str, str]]:
        """Yield what a reader (raising ValueError) says about a JSON column."""
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
