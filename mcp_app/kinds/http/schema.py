"""The shape of the config of a call to another site, which a row holds.

    {"site": "helpdesk", "method": "POST", "path": "/tickets/{{queue}}",
     "query": [{"name": "expand", "value": "{{expand}}", "as": "commas"}],
     "headers": [{"name": "Accept-Language", "value": "{{language}}"}],
     "body": {"json": {"subject": "{{subject}}", "source": "chat"}},
     "take": "ticket", "keep": ["id", "url"], "most": 50,
     "errors": {"404": "There is no queue {{queue}}."}}

With `"segments": "several"`, the last value of the path may have slashes in it.  A body
is `json`, which may have a `type` of its own, `form` (pairs as in `query`) or `text`
with its `type`.
"""

from __future__ import annotations

from typing import Final

from mcp_app.protocol.json_types import JsonObject

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
REPEAT, COMMAS, SPACES, PIPES, BRACKETS = (
    "repeat",
    "commas",
    "spaces",
    "pipes",
    "brackets",
)
STYLES: Final = (REPEAT, COMMAS, SPACES, PIPES, BRACKETS)
"""How lists and objects stand in a query; OpenAPI's style and explode say the same."""
SEVERAL: Final = "several"
MOST_PAIRS: Final = 50
MOST_ENTRIES: Final = 1_000

_TEXT: Final[JsonObject] = {"type": "string", "maxLength": 4_000}
_NAME: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 200}
_DOTTED: Final[JsonObject] = {
    "type": "string",
    "pattern": r"^[^.]+(\.[^.]+)*$",
    "maxLength": 200,
}


def _object(*needed: str, **properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }


_PAIRS: Final[JsonObject] = {
    "type": "array",
    "maxItems": MOST_PAIRS,
    "items": _object(
        "name", "value", name=_NAME, value=_TEXT, **{"as": {"enum": [*STYLES]}}
    ),
}

SCHEMA: Final[JsonObject] = _object(
    site={"type": "string"},
    method={"enum": [*METHODS]},
    path=_TEXT,
    segments={"enum": [SEVERAL]},
    query=_PAIRS,
    headers={
        "type": "array",
        "maxItems": MOST_PAIRS,
        "items": _object("name", "value", name=_NAME, value=_TEXT),
    },
    body={
        "oneOf": [
            _object("json", json={}, type=_NAME),
            _object("form", form=_PAIRS),
            _object("text", "type", text={"type": "string"}, type=_NAME),
        ]
    },
    take=_DOTTED,
    keep={"type": "array", "items": _DOTTED, "maxItems": MOST_PAIRS},
    most={"type": "integer", "minimum": 1, "maximum": MOST_ENTRIES},
    errors={
        "type": "object",
        "propertyNames": {"pattern": "^[1-5][0-9][0-9]$"},
        "additionalProperties": _TEXT,
        "maxProperties": MOST_PAIRS,
    },
)
"""The JSON Schema of a config."""
