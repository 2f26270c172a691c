"""Words that configs had before the first release, for who still writes one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from mcp_app.kinds.kind import KindError
from mcp_app.protocol.json_types import JsonObject

MEMBERS: Final[Mapping[str, Mapping[str, str]]] = {
    "query": {
        **{"is": "lookup", "do": "aggregate", "as": "name", "by": "group_by"},
        **{"each": "unit", "most": "limit"},
    },
    "http": {"as": "style", "most": "limit"},
}
"""What members are called now, by the kind."""
VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "lookup": {
        **{"is": "exact", "is_any_case": "iexact", "one_of": "in"},
        **{"begins": "istartswith", "contains": "icontains"},
        **{"least": "gte", "most": "lte", "empty": "isempty"},
    },
    "aggregate": {"average": "avg", "least": "min", "greatest": "max"},
}
"""What values are called now, by the new name of their member."""


def hint_new_words(
    errors: Iterable[KindError], config: JsonObject
) -> Iterator[KindError]:
    """Yield the errors; those about an old word say what it is called now."""
    for error in errors:
        member, value = "", cast("Any", config)
        with suppress(LookupError, TypeError, ValueError):
            for name in error.place.split("."):
                if isinstance(value, list):
                    value = value[int(name)]
                else:
                    member, value = name, value[name]
        kind = "http" if member in ("query", "form") else "query"
        words = {**MEMBERS[kind], **VALUES.get(member, {})}
        for word in (*re.findall(r"'(\w+)'", error.message), str(value)):
            if now := words.get(word):
                error.message += f" “{word}” is now “{now}”."
        yield error
