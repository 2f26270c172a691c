"""The form of servers."""

from __future__ import annotations

from mcp_app.admin.forms.definition import WIDGETS
from mcp_app.admin.forms.fields import JsonField
from mcp_app.admin.forms.watched import WatchedForm
from mcp_app.admin.wording import SERVER
from mcp_app.models import Server


class ServerForm(WatchedForm[Server]):
    """A server: what it offers, and who may come in."""

    WORDS = SERVER

    icons = JsonField()

    class Meta:
        model = Server
        fields = ()
        widgets = WIDGETS
