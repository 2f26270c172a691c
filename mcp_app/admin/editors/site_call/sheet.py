"""The config of a call of another site as a page: the form, or the same as JSON."""

from __future__ import annotations

from typing import Any

from mcp_app.admin.editors.json_editor import Initial
from mcp_app.admin.editors.not_representable import NotRepresentable
from mcp_app.admin.editors.one_form import OneFormSheet
from mcp_app.admin.editors.site_call.call_form import CallForm
from mcp_app.kinds.http.schema import SCHEMA
from mcp_app.protocol import schemas


class CallSheet(OneFormSheet):
    """The config of the kind `http`; resources only read."""

    row_template = "mcp_app/widgets/site_call.html"

    def __init__(self, *, only_reads: bool) -> None:
        super().__init__(type("CallForm", (CallForm,), {"only_reads": only_reads}))
        self._only_reads = only_reads

    def initial(self, value: Any) -> Initial:
        config = value or {}
        for violation in schemas.compile(SCHEMA).violations(config):
            raise NotRepresentable(f"{violation.path}: {violation.message}")
        for name in ("method", "body"):
            if self._only_reads and config.get(name, "GET") != "GET":
                raise NotRepresentable(f"“{name}”")
        return [{"config": config}]
