"""A query's config as a page: the form, or the same as JSON."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from mcp_app.admin.editors.json_editor import Initial
from mcp_app.admin.editors.lookup.filter_rows import initial_of
from mcp_app.admin.editors.lookup.lookup_form import LookupForm
from mcp_app.admin.editors.not_representable import NotRepresentable
from mcp_app.admin.editors.one_form import OneFormSheet
from mcp_app.catalog.open_models import OpenModels
from mcp_app.kinds.query.schema import SCHEMA
from mcp_app.protocol import schemas


class LookupSheet(OneFormSheet):
    """The config of the kind `query`; `one` for templates."""

    row_template = "mcp_app/widgets/lookup.html"

    def __init__(self, opened: OpenModels, *, one: bool) -> None:
        form = type("LookupForm", (LookupForm,), {"opened": opened, "one": one})
        super().__init__(form)

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
