from __future__ import annotations

import json
from typing import Any

import pytest
from django.http import QueryDict

from mcp_app.admin.editors.json_editor import SheetField
from mcp_app.admin.editors.rows import NotRepresentable
from mcp_app.admin.editors.suggestions import ArgumentSheet
from tests.admin.sheet_pages import given

WHOLE: dict[str, Any] = {
    "name": "order",
    "title": "Order number",
    "description": "On the bill:\ntop right",
    "required": True,
}
LISTS: list[list[dict[str, Any]]] = [
    [],
    [{"name": "tone"}],
    [WHOLE],
    [{"required": False, "name": "a"}, WHOLE, {"description": "", "name": "b"}],
    [{"suggestions": ["b", "a, c"], "name": "a"}, {"name": "b", "suggestions": []}],
]


def test_only_the_edited_argument_is_written_anew() -> None:
    stored = json.dumps(LISTS[3])
    result = given(ArgumentSheet(), stored, **{"arguments-2-title": "B"}).result
    assert json.loads(result.text) == [
        {"required": False, "name": "a"},
        WHOLE,
        {"name": "b", "title": "B"},
    ]


@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        ({"title": "T"}, "name", "An argument needs a name."),
        ({"name": "x.y"}, "name", "“x.y” cannot name an argument"),
        ({"name": "a b"}, "name", "“a b” cannot name an argument"),
        ({"name": "a", "description": "\u202e"}, "description", "U+202E"),
        ({"name": "a", "title": "\u202e"}, "title", "U+202E"),
        (
            {"name": "a", "suggestions": "b\r\nc\r\n b"},
            "suggestions",
            "“b” is suggested more than once.",
        ),
        (
            {"name": "a", "suggestions": "b\u202ec"},
            "suggestions",
            "“b⟦U+202E⟧c”: There is a hidden character U+202E",
        ),
    ],
)
def test_what_makes_no_argument_is_told_at_its_field(
    typed: dict[str, str], field: str, said: str
) -> None:
    typed = {f"arguments-0-{name}": text for name, text in typed.items()}
    sent = given(ArgumentSheet(), "", **typed)
    assert sent.result.problem == "1 entry below has an error."
    assert sent.submitted_rows is not None
    assert said in sent.submitted_rows.forms[0].errors[field][0]


def test_a_name_is_there_once() -> None:
    typed = {"arguments-0-name": "a", "arguments-1-name": "a"}
    sent = given(ArgumentSheet(), "", **typed)
    assert sent.submitted_rows is not None
    [sentence] = sent.submitted_rows.forms[1].errors["name"]
    assert sentence == "The argument a is there more than once."


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1},
        [{"name": 1}],
        [{"name": "a", "x": 1}],
        [{"name": "a", "title": " T"}],
        [{"name": "a", "title": ""}, {"name": "a"}],
        [{"name": "a", "description": "x\ry"}],
        [{"name": "a", "suggestions": ["b "]}],
        [{"name": f"a{n}"} for n in range(41)],
    ],
)
def test_what_rows_cannot_show(value: Any) -> None:
    with pytest.raises(NotRepresentable):
        ArgumentSheet().initial_rows(value)


def test_json_is_checked_by_the_rules_of_arguments() -> None:
    typed = {"arguments-json": '[{"name": "a", "x": 1}]'}
    sent = given(ArgumentSheet(), "", **typed)
    assert "An argument has no member “x”" in sent.result.problem


def test_what_was_sent_for_no_sheet_changes_nothing() -> None:
    field = SheetField(ArgumentSheet())
    field.set_stored_value('[{"name": "a"}]')
    sent = field.widget.value_from_datadict(QueryDict(), None, "arguments")
    assert field.clean(sent) == '[{"name": "a"}]'
    assert not field.has_changed(None, sent)
