from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_app.admin.editors.json_editor import JsonEditor, SheetField
from mcp_app.admin.editors.json_texts import formatted_text
from mcp_app.admin.editors.message_forms import MessageSheet
from mcp_app.admin.editors.parameter_forms import ParameterSheet
from mcp_app.admin.editors.suggestions import ArgumentSheet
from tests.admin.sheet_pages import given, given_again, html_of, name_of

STORED = (
    '{"required": ["city"], "properties": {"city": {"maxLength": 80, "type": "string"},'
    ' "days": {"default": 3, "type": "integer", "maximum": 14}}, "type": "object"}'
)
BEYOND = '{"type":"object","properties":{"p":{"oneOf":[{"type":"string"}]}}}'
SHEET = ParameterSheet()


def rendered(sent: Any) -> str:
    """Return the page after the form was sent, and something else was wrong."""
    return str(SheetField(SHEET).widget.render("sheet", sent, {"id": "id_sheet"}))


def test_the_json_is_read_where_it_was_changed_whatever_is_chosen() -> None:
    typed = '{"type": "object",\n "properties": {"a": {}}}'
    for way in ("table", "json"):
        sent = given(SHEET, STORED, **{"sheet-as": way, "sheet-json": typed})
        assert (sent.result.text, sent.result.way) == (typed, "json")


def test_rows_move_and_go() -> None:
    moved = given(SHEET, STORED, **{"sheet-0-ORDER": "2", "sheet-1-ORDER": "1"})
    assert list(json.loads(moved.result.text)["properties"]) == ["days", "city"]
    typed = {"sheet-0-DELETE": "on"}
    left = json.loads(given(SHEET, STORED, **typed).result.text)
    assert left["properties"] == {"days": json.loads(STORED)["properties"]["days"]}
    assert left["required"] == []
    typed["sheet-1-DELETE"] = "on"
    left = json.loads(given(SHEET, STORED, **typed).result.text)
    assert left["properties"] == {}


def test_what_is_kept_in_one_way_is_shown_in_both() -> None:
    page = rendered(given(SHEET, STORED, **{"sheet-0-name": "town"}))
    again = given_again(SHEET, page, STORED)
    assert "town" in again.json_text
    assert list(json.loads(again.result.text)["properties"]) == ["town", "days"]
    # After that, a change of the JSON alone is no second change.
    page = rendered(given(SHEET, STORED, **{"sheet-json": '{"properties": {"x": {}}}'}))
    assert 'value="x"' in page
    again = given_again(SHEET, page, STORED, **{"sheet-json": '{"properties": {}}'})
    assert (again.result.text, again.result.both) == ('{"properties": {}}', False)


def test_rows_that_nobody_was_shown_are_not_read() -> None:
    sent = given(
        SHEET,
        BEYOND,
        **{"sheet-TOTAL_FORMS": "1", "sheet-INITIAL_FORMS": "0", "sheet-0-name": "x"},
    )
    assert sent.result.text == BEYOND
    assert given(SHEET, BEYOND, **{"sheet-keep": "table"}).result.text == BEYOND


def test_a_schema_beyond_the_table_is_refused_like_any_other() -> None:
    sent = given(SHEET, BEYOND, **{"sheet-json": "{"})
    assert "This is not JSON" in sent.result.problem
    assert list(SheetField(SHEET).sheet_widget.error_places(sent)) == []
    assert "The table cannot show all" in rendered(sent)
    none = given(SHEET, BEYOND, **{"sheet-json": "{", "sheet-keep": "table"})
    assert none.result.problem == "There are no rows."


def test_json_may_be_cleared_and_other_blanks_change_nothing() -> None:
    assert given(SHEET, STORED, **{"sheet-json": " "}).result.text == ""
    sent = given(SHEET, STORED, **{"sheet-json": formatted_text(STORED) + "  "})
    assert sent.result.text == STORED
    typed = STORED.replace(", ", ",\n")
    assert given(SHEET, STORED, **{"sheet-json": typed}).result.text == STORED


def test_too_many_rows_are_told() -> None:
    rows = {f"sheet-{n}-name": f"a{n}" for n in range(41)}
    sent = given(SHEET, "", **{**rows, "sheet-TOTAL_FORMS": "41"})
    assert "at most 40 forms" in sent.result.problem


@pytest.mark.parametrize("sheet", [SHEET, MessageSheet(), ArgumentSheet()])
@pytest.mark.parametrize("shown", ["7", "true", '"a"', "[7]", "[[]]"])
def test_a_page_that_was_tampered_with_has_no_rows(
    sheet: JsonEditor, shown: str
) -> None:
    name = name_of(sheet)
    sent = given(sheet, "", **{f"{name}-shown": shown, f"{name}-0-name": "a"})
    assert sent.submitted_rows is None
    widget = SheetField(sheet).widget
    assert "data-mcp-sheet" in widget.render(name, sent, {"id": "id"})


def test_what_is_stored_and_no_json_is_shown_as_it_is() -> None:
    page = html_of(SHEET, "{<b>")
    assert "it is not JSON" in page
    assert "{&lt;b&gt;" in page
    assert given(SHEET, "{<b>").result.text == "{<b>"
