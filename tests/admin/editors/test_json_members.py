"""Two people's changes of one JSON, member by member."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from mcp_app.admin.editors.json_members import parts_of_json, text_on_top

GUARD: Final = {"path": "state", "lookup": "in", "exclude": True, "value": ["back"]}
ASKED: Final = {"path": "state", "lookup": "exact", "parameter": "state"}
TOTAL: Final = {"path": "total", "lookup": "range", "parameter": "total"}
SEARCH: Final = {"path": ["name", "note"], "lookup": "words", "value": "x"}
TWICE: Final = [{**GUARD, "value": [value]} for value in ("back", "gone")]


@pytest.mark.parametrize(
    ("base", "theirs", "mine"),
    [
        ([], [GUARD], [ASKED]),
        ([GUARD], [GUARD, ASKED], [GUARD, TOTAL]),
        ([GUARD, ASKED], [GUARD, ASKED, TOTAL], [GUARD, ASKED, SEARCH]),
        ([ASKED], [ASKED, SEARCH], [ASKED, TOTAL]),
        (TWICE, [*TWICE, ASKED], [*TWICE, TOTAL]),
    ],
)
def test_no_filter_of_two_people_is_lost(base: Any, theirs: Any, mine: Any) -> None:
    texts = [json.dumps({"filters": each}) for each in (base, theirs, mine)]
    before, after = parts_of_json(texts[0]), parts_of_json(texts[2])
    names = {*before, *after}
    touched = [name for name in names if before.get(name) != after.get(name)]
    found = json.loads(text_on_top(texts[1], texts[2], touched))["filters"]
    assert len(found) == len([*theirs, *(each for each in mine if each not in base)])
    assert all(each in found for each in (*theirs, *mine))
