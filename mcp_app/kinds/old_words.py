"""Words that configs had before the first release, for who still writes one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

from mcp_app.kinds.kind import KindError
from mcp_app.protocol.json_types import JsonObject

_WORDS: Final[JsonObject] = {
    **{"is": "lookup", "do": "aggregate", "as": "name", "by": "group_by"},
    **{"each": "unit", "most": "limit", "is_any_case": "iexact", "one_of": "in"},
    **{"begins": "istartswith", "contains": "icontains", "empty": "isempty"},
    **{"average": "avg", "greatest": "max", "least": "gte"},
}
_ELSEWHERE: Final = {
    ("lookup", "is"): "exact",
    ("lookup", "most"): "lte",
    ("aggregate", "least"): "min",
    ("query", "as"): "style",
    ("form", "as"): "style",
}
"""What a word is called as a value of this member, or of its pairs."""


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
        for word in (*re.findall(r"'(\w+)'", error.message), str(value)):
            if now := _ELSEWHERE.get((member, word), _WORDS.get(word)):
                error.message += f" “{word}” is now “{now}”."
        yield error
