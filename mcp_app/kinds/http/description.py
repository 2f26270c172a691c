"""What a call of another site does, in a sentence for staff."""

from __future__ import annotations

from django.utils.translation import gettext as _

from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.kinds.http.config import HttpCall


def sentence(call: HttpCall, definition: Definition) -> str:
    """Return what a tool or resource calls, what it gives, and what it changes."""
    shown = {"method": call.method, "url": call.url, "site": call.site.title}
    if isinstance(definition, ToolDefinition):
        said = _("This tool calls %(method)s %(url)s of %(site)s")
    else:
        said = _("This reads %(url)s of %(site)s")
    parts = [said % shown + _gives(call) + "."]
    if isinstance(definition, ToolDefinition):
        parts.append(_changes(call, definition))
    return " ".join(parts)


def _gives(call: HttpCall) -> str:
    if call.keep and call.take:
        shown = {"members": ", ".join(call.keep), "part": call.take}
        return _(" and gives %(members)s of “%(part)s”") % shown
    if call.keep:
        return _(" and gives %(members)s") % {"members": ", ".join(call.keep)}
    if call.take:
        return _(" and gives “%(part)s”") % {"part": call.take}
    return _(" and gives what it answers")


def _changes(call: HttpCall, definition: ToolDefinition) -> str:
    if call.only_reads or definition.hints.read_only:
        return _("It only reads.")
    if call.method == "DELETE":
        return _("It deletes things.")
    return _("It adds or changes things.")
