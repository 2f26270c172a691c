"""Audience and importance of a resource as choices, beside its annotations as JSON."""

from __future__ import annotations

from typing import Any, Final

from django.utils.translation import gettext_lazy as _

from mcp_app.protocol.json_types import JsonObject

AUDIENCES: Final = {
    "": _("Not said"),
    "user": _("People"),
    "assistant": _("Models"),
    "user assistant": _("People and models"),
}
IMPORTANCES: Final = {
    "": _("Not said"),
    "0": _("None"),
    "0.25": _("Low"),
    "0.5": _("Middle"),
    "0.75": _("High"),
    "1": _("Essential"),
}


def audience_of(annotations: JsonObject) -> str:
    """Return the choice for an audience; "" if there is none."""
    given = annotations.get("audience")
    roles = sorted(set(given), reverse=True) if isinstance(given, list) else []
    choice = " ".join(map(str, roles))
    return choice if choice in AUDIENCES else ""


def importance_of(annotations: JsonObject) -> str:
    """Return the choice for a priority, or else the number itself."""
    priority = annotations.get("priority")
    if isinstance(priority, bool) or not isinstance(priority, int | float):
        return ""
    return next(
        (key for key in IMPORTANCES if key and float(key) == priority), None
    ) or (str(priority))


def merge(annotations: JsonObject, audience: str, importance: str) -> JsonObject:
    """Return annotations with those of the two choices that were changed."""
    chosen: JsonObject = dict(annotations)
    if audience != audience_of(annotations):
        _put(chosen, "audience", audience.split())
    if importance != importance_of(annotations):
        _put(chosen, "priority", _number(importance) if importance else None)
    return chosen


def _put(annotations: JsonObject, name: str, value: Any) -> None:
    if value is None or value == []:
        annotations.pop(name, None)
    else:
        annotations[name] = value


def _number(text: str) -> int | float:
    number = float(text)
    return int(number) if number.is_integer() else number
