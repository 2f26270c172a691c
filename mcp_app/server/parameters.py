"""Reading the parameters of a request, with errors that name the member."""

from __future__ import annotations

from mcp_app.protocol.errors import InvalidParams
from mcp_app.protocol.json_types import JsonObject


def string(params: JsonObject, name: str, place: str = "params") -> str:
    """Return a required string."""
    value = params.get(name)
    if type(value) is not str:
        raise InvalidParams(f"{place}.{name} must be a string.")
    return value


def mapping(
    params: JsonObject, name: str, place: str = "params", *, required: bool = False
) -> JsonObject:
    """Return an object; an optional one that is absent, or null, is empty."""
    value = params.get(name)
    if value is None and not required:
        return {}
    if type(value) is not dict:
        raise InvalidParams(f"{place}.{name} must be an object.")
    return value


def strings(params: JsonObject, name: str, place: str = "params") -> dict[str, str]:
    """Return an optional object whose values are strings."""
    values = mapping(params, name, place)
    for key, value in values.items():
        if type(value) is not str:
            raise InvalidParams(f"{place}.{name}[{key!r}] must be a string.")
    return values
