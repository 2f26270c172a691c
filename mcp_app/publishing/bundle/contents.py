"""What may stand in the content of a row, by the columns of its model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.models import PublishedRow, Server
from mcp_app.models.fields import JSONTextField, parse
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing.bundle.choices import CHOSEN
from mcp_app.publishing.bundle.format import CHOICES


def content_problems(
    row: PublishedRow, content: JsonObject, place: str
) -> Iterator[str]:
    """Yield a sentence for each member that no column of the row can hold.

    What the row says of its values (`problems()`) is left to the row.
    """
    columns = row.content_columns()
    for name, value in content.items():
        here = f"{place}.{name}"
        if name == CHOSEN and isinstance(row, Server):
            yield from _choice_problems(content, here)
        elif name not in columns:
            yield unknown(here)
        else:
            column = cast("models.Field[Any, Any]", row._meta.get_field(name))
            yield from _value_problems(column, value, here)
    try:
        parse(jsonrpc.write(content).decode())
    except ValueError as error:
        yield at(place, str(error))


def at(place: str, sentence: str) -> str:
    """Return a sentence with the place that it is about."""
    return _("%(place)s: %(sentence)s") % {"place": place, "sentence": sentence}


def unknown(place: str) -> str:
    """Return what is said of a member that means nothing."""
    return at(place, _("No member of this name is allowed here."))


def _value_problems(
    column: models.Field[Any, Any], value: object, place: str
) -> Iterator[str]:
    if isinstance(column, JSONTextField):
        fits: bool = isinstance(value, JSON[column.shape])
        must = MUST[JSON[column.shape]]
    else:
        kind = next(each for each in KINDS if isinstance(column, each))
        fits, must = KINDS[kind](value), MUST[kind]
    if not fits:
        yield at(place, str(must))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Whether it is a number that a double can hold."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


KINDS: Final[Mapping[type[models.Field[Any, Any]], Callable[[object], bool]]] = {
    models.CharField: _is_text,
    models.TextField: _is_text,
    models.BooleanField: _is_boolean,
    models.FloatField: _is_number,
    models.IntegerField: _is_integer,
}
JSON: Final[Mapping[str, type]] = {"object": dict, "array": list, "any": object}
MUST: Final = {
    models.CharField: gettext_lazy("This must be a text."),
    models.TextField: gettext_lazy("This must be a text."),
    models.BooleanField: gettext_lazy("This must be true or false."),
    models.FloatField: gettext_lazy("This must be a number, at most 1.8e308."),
    models.IntegerField: gettext_lazy("This must be a whole number."),
    dict: gettext_lazy("This must be an object."),
    list: gettext_lazy("This must be a list."),
    object: gettext_lazy("This must be JSON."),
}


def _choice_problems(content: JsonObject, place: str) -> Iterator[str]:
    chosen = content[CHOSEN]
    if content.get("selection") != Server.Selection.CHOSEN:
        yield at(place, _("This is allowed only with the selection “chosen”."))
    if not isinstance(chosen, dict):
        yield at(place, str(MUST[dict]))
        return
    for name, keys in chosen.items():
        here = f"{place}.{name}"
        if name not in CHOICES:
            yield unknown(here)
        elif not isinstance(keys, list) or not all(map(_is_text, keys)):
            yield at(here, _("This must be a list of texts."))
        elif len(set(keys)) != len(keys):
            yield at(here, _("This list has an entry twice."))
