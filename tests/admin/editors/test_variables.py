from __future__ import annotations

from django.http import QueryDict

from mcp_app.admin.editors.suggestions import VariablesField

PATTERN = "shop://{kind}/{number}"
STORED = '{ "number": ["1042", " 7"] }'


def field(stored: str = STORED, pattern: str = PATTERN) -> VariablesField:
    made = VariablesField()
    made.set_stored_value(stored, pattern)
    return made


def sent(**texts: str) -> dict[str, list[str]]:
    """Return what the page sends that shows STORED, with something typed."""
    data = QueryDict(mutable=True)
    data.update({"suggestions": "1", "suggestions-kind": ""})
    data.update({"suggestions-number": "1042\r\n 7"})
    data.update({f"suggestions-{name}": text for name, text in texts.items()})
    found: dict[str, list[str]] = field().widget.value_from_datadict(
        data, None, "suggestions"
    )
    return found


def html_of(made: VariablesField, value: object = None) -> str:
    return str(made.widget.render("suggestions", value, {"id": "id_suggestions"}))


def test_what_nobody_touched_keeps_its_bytes() -> None:
    assert field().clean(sent()) == STORED
    assert field().clean(None) == STORED
    assert not field().has_changed(None, sent())
    assert field("").clean(None) == ""


def test_a_pattern_that_is_half_typed_says_nothing_about_names() -> None:
    text = html_of(field(pattern="shop://{"))
    assert "<legend>number" in text
    assert "has no" not in text


def test_what_no_form_has_written_is_replaced_and_breaks_no_page() -> None:
    made = field('{"number": 7}')
    assert "<legend>number" in html_of(made)
    assert made.clean({}) == '{"number": 7}'
    assert made.clean(sent()) == '{"number":["1042","7"]}'


def test_names_are_no_markup() -> None:
    text = html_of(field(), {"<b>": ["<i>"]})
    for tag in "bi":
        assert f"&lt;{tag}&gt;" in text
        assert f"<{tag}>" not in text
