"""The forms of definitions in Chromium: with scripts, without, in a strict policy."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.conftest import strictly
from tests.clients.facts import PNG
from tests.marks import long_cases

# They share one demo.
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def strict(staff: Page) -> Iterator[Page]:
    with strictly(staff):
        yield staff


def cell(page: Page, number: int, field: str) -> Locator:
    return page.locator(f"[name='input_schema-{number}-{field}']")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def save_and_stay(page: Page) -> None:
    button(page, "Save").click()
    expect(page.locator(".messagelist .success")).to_contain_text("Saved.")


def schema(page: Page) -> dict[str, object]:
    text = page.locator("[name='input_schema-json']")
    # The script writes it, a moment after the page is shown.
    expect(text).not_to_have_value("")
    found: dict[str, object] = json.loads(text.input_value())["properties"]
    return found


@pytest.mark.long
def test_parameters_are_a_table_without_scripts(scriptless: Page) -> None:
    page = scriptless
    page.goto("/admin/mcp_app/tool/add/?kind=text")
    page.locator("#id_title").fill("scriptless")
    page.locator("#id_text").fill("{{city}} {{days}} {{unit}}")
    cell(page, 0, "name").fill("city")
    cell(page, 1, "name").fill("days")
    cell(page, 1, "type").select_option("Whole number")
    page.locator(".mcp-limits summary").nth(1).click()
    cell(page, 1, "most").fill("14")
    cell(page, 1, "default").fill("30")
    button(page, "Add a parameter").click()

    # A value that is refused is told at its field.
    wrong = cell(page, 1, "default")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(wrong.locator("xpath=..")).to_contain_text(
        "The value 30 is above the largest, 14."
    )
    wrong.fill("3")
    page.locator("#id_text").fill("{{city}} {{days}}")
    button(page, "Add a parameter").click()
    cell(page, 2, "name").fill("unit")
    button(page, "Add a parameter").click()
    expect(page.locator("[data-mcp-rows] > fieldset")).to_have_count(5)
    assert list(schema(page)) == ["city", "days", "unit"]

    # The place is a number, and a box removes.
    cell(page, 2, "ORDER").fill("1")
    cell(page, 0, "ORDER").fill("2")
    cell(page, 1, "DELETE").check()
    page.locator("#id_text").fill("{{city}} {{unit}}")
    button(page, "Add a parameter").click()
    assert list(schema(page)) == ["unit", "city"]


def test_parameters_are_added_moved_and_removed(strict: Page) -> None:
    page = strict
    page.goto("/admin/mcp_app/tool/add/?kind=text")
    page.locator("#id_title").fill("scripted")
    expect(page.locator("[data-mcp-rows] > fieldset")).to_have_count(0)
    for name in ("city", "days", "unit"):
        button(page, "Add a parameter").click()
        page.keyboard.type(name)
    button(page, "{{days}}").click()
    expect(page.locator("#id_text")).to_have_value("{{days}}")
    expect(page.locator("#id_text")).to_be_focused()

    button(page, "Move up unit").click()
    status = page.locator("#id_input_schema .mcp-status")
    expect(status).to_have_text("Moved unit to 2 of 3")
    expect(button(page, "Move up unit")).to_be_focused()
    page.keyboard.press("Enter")
    expect(status).to_have_text("Moved unit to 1 of 3")
    expect(button(page, "Move down unit")).to_be_focused()
    button(page, "Remove city").click()
    expect(status).to_have_text("Removed city")
    expect(button(page, "Remove days")).to_be_focused()
    save_and_stay(page)
    assert list(schema(page)) == ["unit", "days"]


def test_the_other_way_shows_what_was_typed(strict: Page) -> None:
    page = strict
    page.goto("/admin/mcp_app/tool/add/?kind=text")
    button(page, "Add a parameter").click()
    page.keyboard.type("city")
    page.get_by_label("Edit as JSON Schema").check()
    text = page.locator("[name='input_schema-json']")
    expect(text).to_be_visible()
    expect(text).to_be_editable()
    assert schema(page) == {"city": {"type": "string"}}
    text.fill('{"type": "object", "properties": {"town": {"type": "integer"}}}')
    page.get_by_label("Edit as a table").check()
    expect(cell(page, 0, "name")).to_have_value("town")
    expect(cell(page, 0, "type")).to_have_value("integer")
    expect(text).not_to_be_editable()
    expect(button(page, "{{town}}")).to_be_visible()


@pytest.mark.long
def test_leaving_with_changes_is_asked(staff: Page) -> None:
    staff.goto("/admin/mcp_app/tool/add/?kind=text")
    staff.locator("#id_title").press_sequentially("a")
    asked: list[str] = []

    def stay(dialog: object) -> None:
        asked.append(dialog.type)  # type: ignore[attr-defined]
        dialog.accept()  # type: ignore[attr-defined]

    staff.on("dialog", stay)
    staff.goto("/admin/")
    assert asked == ["beforeunload"]
    # Who has changed nothing is asked nothing.
    staff.goto("/admin/mcp_app/tool/add/?kind=text")
    staff.locator("#id_title").click()
    staff.goto("/admin/")
    assert asked == ["beforeunload"]


@pytest.mark.parametrize(
    "model", ["prompt", *long_cases("tool", "resource", "resourcetemplate")]
)
def test_a_phone_needs_no_sideways_scrolling(staff: Page, model: str) -> None:
    staff.set_viewport_size({"width": 320, "height": 800})
    for query in ("", "?kind=text"):
        staff.goto(f"/admin/mcp_app/{model}/add/{query}")
        for name in ("Add a parameter", "Add an argument", "Add a message"):
            for found in button(staff, name).all():
                found.click()
        assert staff.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.long
def test_letters_and_tokens_are_counted(staff: Page) -> None:
    staff.goto("/admin/mcp_app/tool/add/?kind=text")
    staff.locator("#id_description").fill("Twelve chars")
    counted = staff.locator(".field-description .mcp-count")
    expect(counted).to_have_text("12 characters, ≈ 3 tokens")


def test_variables_follow_the_address_pattern(strict: Page) -> None:
    page = strict
    page.goto("/admin/mcp_app/resourcetemplate/add/?kind=text")
    variables = page.locator("#id_suggestions")
    expect(variables.locator("fieldset")).to_have_count(0)
    page.locator("#id_uri_template").fill("shop://{kind}/{number}")
    expect(variables.locator("legend")).to_have_text(["kind", "number"])
    variables.locator("summary").last.click()
    page.get_by_label("Suggestions for number:").fill("1042\n7")
    page.locator("#id_uri_template").fill("shop://{id}/{number}")
    expect(variables.locator("legend")).to_have_text(["id", "number"])
    expect(variables.locator("summary").last).to_have_text("Suggestions: 2")
    page.locator("#id_uri_template").fill("shop://{id}")
    expect(variables).to_contain_text("The address pattern has no number")
    page.locator("#id_uri_template").fill("shop://{id}/{number}")
    expect(variables).not_to_contain_text("has no number")
    page.locator("#id_title").fill("Order")
    page.locator("#id_text").fill("{{id}} {{number}}")
    save_and_stay(page)
    expect(page.locator("[name='suggestions-number']")).to_have_value("1042\n7")


def test_what_is_typed_while_a_part_is_drawn_is_kept(staff: Page) -> None:
    staff.goto("/admin/mcp_app/resourcetemplate/add/?kind=text")
    staff.locator("#id_uri_template").fill("shop://{kind}")
    text = staff.locator("[name='suggestions-kind']")
    expect(text).to_have_count(1)
    staff.locator("#id_suggestions summary").click()
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        held.append(route)

    staff.route("**/preview/?part=suggestions", hold)
    with staff.expect_request("**/preview/?part=suggestions"):
        staff.locator("#id_uri_template").fill("shop://{kind}/{number}")
    text.fill("order")
    with staff.expect_request("**/preview/?part=suggestions"):
        held[0].continue_()
    expect(staff.locator("#id_suggestions legend")).to_have_text(["kind", "number"])
    expect(text).to_have_value("order")


@pytest.mark.parametrize(
    "name", ["__proto__", *long_cases("show", "constructor", "toString")]
)
def test_a_variable_may_have_any_name(strict: Page, name: str) -> None:
    page = strict
    page.goto("/admin/mcp_app/resourcetemplate/add/?kind=text")
    page.locator("#id_uri_template").fill(f"shop://{{{name}}}")
    variables = page.locator("#id_suggestions")
    variables.locator("summary").click()
    text = page.locator(f"[name='suggestions-{name}']")
    text.fill("one\ntwo")
    page.locator("#id_uri_template").fill(f"shop://{{{name}}}/{{x.y}}{{?b,c}}")
    expect(variables.locator("legend")).to_have_text([name, "x.y", "b", "c"])
    expect(text).to_have_value("one\ntwo")
    expect(page.locator(".field-text button.mcp-chip")).to_have_text(
        [f"{{{{{each}}}}}" for each in (name, "x.y", "b", "c")]
    )


def test_an_argument_may_have_any_name(strict: Page) -> None:
    page = strict
    page.goto("/admin/mcp_app/prompt/add/?kind=text")
    button(page, "Add an argument").click()
    page.keyboard.type("show")
    page.locator("[name='config-0-text']").fill("{{show}}!")
    page.locator("[name='preview-show']").fill("This")
    said = page.locator("#id_preview .mcp-said")
    expect(said).to_contain_text("This!")
    page.get_by_role("button", name="Refresh the preview").click()
    expect(said).to_contain_text("This!")
    expect(page.locator("[name='preview-show']")).to_have_value("This")


@pytest.mark.long
def test_what_was_open_and_focused_stays_so(staff: Page) -> None:
    staff.goto("/admin/mcp_app/resourcetemplate/add/?kind=text")
    pattern = staff.locator("#id_uri_template")
    pattern.fill("shop://{kind}/{number}")
    rows = staff.locator("#id_suggestions details")
    expect(rows).to_have_count(2)
    rows.last.locator("summary").click()
    with staff.expect_response("**/preview/?part=suggestions"):
        pattern.fill("shop://{id}/{kind}/{number}")
        rows.last.locator("summary").focus()
    expect(rows).to_have_count(3)
    is_open = "found => found.map(each => each.open)"
    assert rows.evaluate_all(is_open) == [False, False, True]
    expect(rows.last.locator("summary")).to_be_focused()


def test_the_focus_stays_where_it_was_in_a_table(staff: Page) -> None:
    staff.goto("/admin/mcp_app/prompt/add/?kind=text")
    button(staff, "Add an argument").click()
    staff.keyboard.type("order")
    staff.locator("[name='config-0-text']").fill("{{order}}")
    again = staff.get_by_role("button", name="Refresh the preview")
    value = staff.locator("[name='preview-order']")
    expect(value).to_have_count(1)
    for focused in (again, value):
        focused.focus()
        with staff.expect_response("**/preview/?part=preview"):
            staff.locator("#id_title").dispatch_event("input", {"bubbles": True})
        expect(focused).to_be_focused()


@pytest.mark.long
def test_a_name_is_said_as_it_is(staff: Page) -> None:
    staff.goto("/admin/mcp_app/tool/add/?kind=text")
    for name in ("$&PLACE", "b"):
        button(staff, "Add a parameter").click()
        staff.keyboard.type(name)
    button(staff, "Move down $&PLACE").click()
    status = staff.locator("#id_input_schema .mcp-status")
    expect(status).to_have_text("Moved $&PLACE to 2 of 2")
    button(staff, "Remove $&PLACE").click()
    expect(status).to_have_text("Removed $&PLACE")


@pytest.mark.long
def test_suggestions_and_a_file_without_scripts(scriptless: Page) -> None:
    page = scriptless
    page.goto("/admin/mcp_app/prompt/add/?kind=text")
    page.locator("#id_title").fill("suggesting")
    page.locator("[name='arguments-0-name']").fill("tone")
    page.locator("#id_arguments summary").first.click()
    page.locator("[name='arguments-0-suggestions']").fill("kind\nbrief")
    page.locator("[name='config-0-text']").fill("Be {{tone}}.")
    save_and_stay(page)
    expect(page.locator("#id_arguments summary").first).to_have_text("Suggestions: 2")

    page.goto("/admin/mcp_app/tool/add/?kind=text")
    page.locator("#id_title").fill("sign")
    page.locator("#id_text").fill("Our sign")
    page.get_by_label("File:", exact=True).set_input_files(
        {"name": "sign.png", "mimeType": "image/png", "buffer": b64decode(PNG)}
    )
    save_and_stay(page)
    expect(page.locator("#id_file img")).to_be_visible()
    page.get_by_label("Remove this file").check()
    save_and_stay(page)
    expect(page.locator("#id_file img")).to_have_count(0)
    expect(page.locator("#id_text")).to_have_value("Our sign")
