"""The form of a kind of a site's own."""

from __future__ import annotations

from django import forms

from mcp_app.kind_forms import ConfigForm, ToolForm
from mcp_app.models import Tool
from tests.kinds.stations import SITES


class StationForm(ConfigForm[Tool], ToolForm):
    """One field stands for the config."""

    MEMBERS = ("station",)

    station = forms.ChoiceField(choices=[(each, each.title()) for each in SITES])
