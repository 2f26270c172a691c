"""The form of servers."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from mcp_app.admin.forms.definition import WIDGETS
from mcp_app.admin.forms.fields import JsonField
from mcp_app.admin.forms.watched import Difference, WatchedForm
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

    def _chosen_anew(self) -> Iterator[str]:
        """Yield the choices that differ from what is saved now."""
        for name in self.fields.keys() & set(Server.CHOICES):
            if self.fields[name].has_changed(self.initial.get(name), self[name].data):
                yield name

    def _differences(self) -> Iterator[Difference]:
        yield from super()._differences()
        for name in self._chosen_anew():
            saved, mine = self.initial.get(name, ()), self.cleaned_data.get(name, ())
            yield Difference(
                label=str(self.fields[name].label),
                theirs=", ".join(map(str, saved)) or _("(empty)"),
                mine=", ".join(map(str, mine)) or _("(empty)"),
            )
