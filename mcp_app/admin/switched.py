"""The column and the filter for what is switched on, in the words of the forms."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from mcp_app.models import DefinitionRow, Server


class SwitchedOn(admin.BooleanFieldListFilter):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.title = _("switched on")


@admin.display(description=_("on"), boolean=True, ordering="enabled")
def switched_on(row: DefinitionRow | Server) -> bool:
    return row.enabled
