"""A JSON column that one form shows, with rows of small forms inside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from django import forms
from django.forms.boundfield import BoundField
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import WORDS, Initial, JsonEditor
from mcp_app.admin.editors.rows import NotRepresentable, RowForm, Rows
from mcp_app.protocol import schemas
from mcp_app.protocol.json_types import JsonObject


class OneForm(RowForm):
    """The form; `base` is the shown value, which may have members without fields."""

    wrong_row: ClassVar[Any] = _("An entry has an error.")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.base: JsonObject = self.initial.get("config", {})

    def inner_formsets(self) -> Sequence[Rows]:
        """Return the rows inside the form."""
        raise NotImplementedError

    def build_config(self) -> JsonObject:
        """Return the config that the valid page describes."""
        raise NotImplementedError

    def make_rows(self, formset: type[Rows], name: str, initial: Initial) -> Rows:
        """Return rows inside the form."""
        data = self.data if self.is_bound else None
        return formset(data, initial=initial, prefix=self.add_prefix(name))

    def full_clean(self) -> None:
        super().full_clean()
        if self.is_bound:
            for rows in self.inner_formsets():
                if not rows.is_valid():
                    self.add_error(None, self.wrong_row)

    def error_places(self, number: str) -> Iterator[tuple[str, BoundField, str]]:
        for name, sentences in self.errors.items():
            if name in self.fields:
                yield "", self[name], " ".join(map(str, sentences))
        for rows in self.inner_formsets():
            for at, form in enumerate(rows.wrong):
                yield from form.error_places(str(at + 1))

    def has_changed(self) -> bool:
        return super().has_changed() or any(
            rows.has_changed() for rows in self.inner_formsets()
        )


def put_member(config: JsonObject, name: str, value: Any) -> None:
    """Set a member; remove an empty one, unless it is stored like that."""
    if value or (name in config and value == config[name]):
        config[name] = value
    else:
        config.pop(name, None)


class OneRow(Rows):
    """A formset that always has one form, which nobody can remove."""

    def add_fields(self, form: RowForm, index: int | None) -> None:
        """Add nothing: there is neither an order nor a box to remove it."""

    @property
    def ordered_forms(self) -> list[RowForm]:
        return list(self.forms)

    @property
    def wrong(self) -> list[RowForm]:
        return [form for form in self.forms if form.errors]

    def wrong_in_words(self) -> str:
        places = (place for form in self.wrong for place in form.error_places(""))
        return " ".join(f"{bound.label}: {message}" for _row, bound, message in places)


class OneFormSheet(JsonEditor):
    """A config as one form, or as JSON."""

    words = {
        **WORDS,
        "as_table": _("Choose"),
        "beyond": _(
            "This page cannot show all of it (%(reason)s). It is kept exactly as it is;"
            " edit it as JSON."
        ),
        "both": _("You changed both the choices and the JSON. Choose which to keep."),
        "keep_table": _("Keep the choices"),
    }

    def __init__(
        self, form: type[OneForm], schema: JsonObject, **options: object
    ) -> None:
        """Make a subclass of `form` with `options` as class members."""
        self._schema = schema
        self.formset = forms.formset_factory(  # type: ignore[misc, assignment]
            type(form.__name__, (form,), options),
            formset=OneRow,
            extra=0,
            min_num=1,
            max_num=1,
            absolute_max=1,
        )

    def initial_rows(self, value: Any) -> Initial:
        config = value or {}
        for violation in schemas.compile_schema(self._schema).violations(config):
            raise NotRepresentable(f"{violation.path}: {violation.message}")
        return [{"config": config}]

    def value_of_rows(self, rows: Iterable[RowForm], base: Any) -> Any:
        (form,) = (row for row in rows if isinstance(row, OneForm))
        return form.build_config()
