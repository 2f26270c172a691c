"""A query's config as a page: the form, or the same as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import Initial, JsonEditor
from mcp_app.admin.editors.lookup.filter_rows import initial_of
from mcp_app.admin.editors.lookup.lookup_form import LookupForm
from mcp_app.admin.editors.not_representable import NotRepresentable
from mcp_app.admin.editors.rows import RowForm, Rows
from mcp_app.catalog.open_models import OpenModels
from mcp_app.kinds.query.schema import SCHEMA
from mcp_app.protocol import schemas


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


class LookupSheet(JsonEditor):
    """The config of the kind `query`; `one` for templates."""

    row_template = "mcp_app/widgets/lookup.html"
    words = {
        "as_table": _("Choose"),
        "as_json": _("Edit as JSON"),
        "json": _("The same as JSON"),
        "json_label": _("JSON"),
        "beyond": _(
            "This page cannot show all of it (%(reason)s). It is kept exactly as it is;"
            " edit it as JSON."
        ),
        "both": _("You changed both the choices and the JSON. Choose which to keep."),
        "keep_table": _("Keep the choices"),
        "keep_json": _("Keep the JSON"),
    }

    def __init__(self, opened: OpenModels, *, one: bool) -> None:
        form = type("LookupForm", (LookupForm,), {"opened": opened, "one": one})
        self.formset = forms.formset_factory(  # type: ignore[misc, assignment]
            form, formset=OneRow, extra=0, min_num=1, max_num=1, absolute_max=1
        )

    def initial(self, value: Any) -> Initial:
        config = value or {}
        for violation in schemas.compile(SCHEMA).violations(config):
            raise NotRepresentable(f"{violation.path}: {violation.message}")
        for part in (config, *config.get("lists", ())):
            initial_of(part.get("filters", ()))
        paths = [each["path"] for each in config.get("lists", ())]
        if len(set(paths)) < len(paths):
            raise NotRepresentable(_("a relation is listed twice"))
        return [{"config": config}]

    def value(self, rows: Iterable[RowForm], base: Any) -> Any:
        (form,) = (each for each in rows if isinstance(each, LookupForm))
        return form.config()

    def check_rows(self, rows: Rows) -> None:
        """Do nothing: there is one row."""
