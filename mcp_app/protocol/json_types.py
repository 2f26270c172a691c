"""The types of values that came from JSON, or become it."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
