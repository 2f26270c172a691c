"""The shape of a query's config, which a row holds.

    {"model": "shop.Order",
     "filters": [{"path": "state", "is": "one_of", "parameter": "states"},
                 {"path": "created", "is": "last_days", "parameter": "days",
                  "default": 7},
                 {"path": "test", "is": "is", "value": false}],
     "answer": "rows", "fields": ["number", "total", "customer.name"],
     "lists": [{"path": "items", "fields": ["sku", "amount"], "filters": [],
                "order": ["sku"], "most": 20}],
     "order": ["-created"], "most": 50, "count": true}

or `"answer": "groups"` with `by` and `measures`.  `"answer": "one"` is for templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from mcp_app.catalog.open_models import FieldKind
from mcp_app.kinds.query.comparisons import COMPARISONS, EMPTY
from mcp_app.protocol.json_types import JsonObject

MOST_ROWS: Final = 200
USUAL_ROWS: Final = 50
MOST_LISTED: Final = 50
USUAL_LISTED: Final = 20
MOST_SORTED: Final = 3
MOST_GROUPED: Final = 3
LONGEST_SORTED: Final = 255
CURSOR: Final = "cursor"
ROWS, GROUPS, ONE = "rows", "groups", "one"

NUMBERS: Final = frozenset({FieldKind.NUMBER, FieldKind.FLOAT, FieldKind.DECIMAL})
DATES: Final = frozenset({FieldKind.DATE, FieldKind.DATETIME})
MEASURES: Final[Mapping[str, frozenset[FieldKind]]] = {
    "count": frozenset(),
    "sum": NUMBERS,
    "average": NUMBERS,
    "least": NUMBERS | DATES | {FieldKind.TIME},
    "greatest": NUMBERS | DATES | {FieldKind.TIME},
}
"""What can be measured, of which kinds of field."""
UNITS: Final = ("day", "week", "month", "quarter", "year")

MOST_MEASURED: Final = 5
MOST_PATHS: Final = 5
"""Texts that one filter looks at."""

LONGEST_NAME: Final = 40
NAME_PATTERN: Final = "^[A-Za-z][A-Za-z0-9_]*$"
_NAME: Final[JsonObject] = {
    "type": "string",
    "pattern": NAME_PATTERN,
    "maxLength": LONGEST_NAME,
}
_PATH: Final[JsonObject] = {"type": "string", "maxLength": 200}


def _array(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "items": items, "maxItems": most}


def _object(needed: Sequence[str], /, **properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }


_FILTERS: Final[JsonObject] = _array(
    _object(
        ["path", "is"],
        path={"anyOf": [_PATH, {**_array(_PATH, MOST_PATHS), "minItems": 1}]},
        **{"is": {"enum": [*dict.fromkeys(sum(COMPARISONS.values(), ())), EMPTY]}},
        parameter=_NAME,
        description={"type": "string", "maxLength": 1000},
        required={"type": "boolean"},
        default={},
        value={},
    ),
    20,
)
_FIELDS: Final[JsonObject] = _array(_PATH, 50)
_ORDER: Final[JsonObject] = _array(_PATH, MOST_SORTED)

SCHEMA: Final[JsonObject] = _object(
    (),
    model={"type": "string"},
    filters=_FILTERS,
    answer={"enum": [ROWS, GROUPS, ONE]},
    fields=_FIELDS,
    lists=_array(
        _object(
            ["path", "fields"],
            path=_PATH,
            fields={**_FIELDS, "minItems": 1},
            filters=_FILTERS,
            order=_ORDER,
            most={"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
        ),
        3,
    ),
    order=_ORDER,
    most={"type": "integer", "minimum": 1, "maximum": MOST_ROWS},
    count={"type": "boolean"},
    by=_array(
        {
            "anyOf": [
                _PATH,
                _object(["path", "each"], path=_PATH, each={"enum": list(UNITS)}),
            ]
        },
        MOST_GROUPED,
    ),
    measures=_array(
        _object(["do", "as"], do={"enum": list(MEASURES)}, path=_PATH, **{"as": _NAME}),
        MOST_MEASURED,
    ),
)
"""The JSON Schema of a config."""
