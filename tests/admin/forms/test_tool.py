from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, override_settings

from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.interface.definitions import ToolDefinition
from mcp_app.kinds import usable_kinds
from mcp_app.models import Blob, Tool
from mcp_app.models.fields import digest
from mcp_app.protocol.content import Image, Text
from tests.admin.pages import (
    add,
    errors,
    fill_in,
    fill_in_again,
    form_page,
    page_of,
    save,
    saved,
    shown_values,
    text_of,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

CONFIG = '{"content": [{"type": "text", "text": "a"}]}'
SCHEMA = '{ "type": "object", "properties": {"z": {}, "a": {"type":"string"}} }'
BEYOND = '{ "type": "object", "properties": {"payment": {"oneOf": [{}]}} }'


def test_a_table_of_parameters_needs_no_json(admin_client: Client) -> None:
    typed = {
        "name": "weather",
        "text": "{{city}}, {{days}} days",
        "input_schema-0-name": "city",
        "input_schema-0-required": "on",
        "input_schema-0-most": "80",
        "input_schema-0-description": "City name in English",
        "input_schema-0-example": "Lisbon",
        "input_schema-1-name": "days",
        "input_schema-1-type": "integer",
        "input_schema-1-least": "1",
        "input_schema-1-most": "14",
        "input_schema-1-default": "3",
    }
    tool = add(admin_client, Tool, **typed)
    city = {
        "type": "string",
        "description": "City name in English",
        "maxLength": 80,
        "examples": ["Lisbon"],
    }
    days = {"type": "integer", "minimum": 1, "maximum": 14, "default": 3}
    assert tool.json("input_schema") == {
        "type": "object",
        "properties": {"city": city, "days": days},
        "required": ["city"],
    }
    shown = text_of(admin_client, tool)
    assert "Limits: at most 80 characters" in shown
    assert "Limits: 1 to 14" in shown
    assert "{{city}}</code>" in shown


def test_values_are_kept_but_for_the_ticked_parameters(admin_client: Client) -> None:
    names = {"input_schema-0-name": "z", "input_schema-1-name": "a"}
    tool = add(admin_client, Tool, name="a", text="a", **names)
    assert not tool.keeps_values
    save(admin_client, tool, keeps_values="True", hidden_values=["z"])
    tool.refresh_from_db()
    assert (tool.keeps_values, tool.hidden_values) == (True, "z")
    text = text_of(admin_client, tool)
    assert "values of calls are kept" in text
    ticks = re.findall(r'name="hidden_values" value="(\w+)"[^>]*?( checked)?>', text)
    assert ticks == [("z", " checked"), ("a", "")]
    save(admin_client, tool, keeps_values="False", hidden_values=[])
    tool.refresh_from_db()
    assert (tool.keeps_values, tool.hidden_values) == (False, "")


def test_more_rows_come_without_saving(admin_client: Client) -> None:
    typed = {
        "name": "a",
        "text": "a",
        "input_schema-0-name": "one",
        "input_schema-1-name": "two",
        "show-add": "1",
    }
    shown = shown_values(fill_in(admin_client, form_page("tool"), **typed))
    assert not Tool.objects.exists()
    assert shown["input_schema-TOTAL_FORMS"] == "4"
    names = [shown[f"input_schema-{number}-name"] for number in range(4)]
    assert names == ["one", "two", "", ""]


@pytest.mark.parametrize("schema", ["", SCHEMA, BEYOND])
def test_a_schema_that_nobody_edited_keeps_its_bytes(
    admin_client: Client, schema: str
) -> None:
    tool = Tool.objects.create(name="a", config=CONFIG, input_schema=schema)
    save(admin_client, tool, title="A")
    assert (tool.title, tool.input_schema) == ("A", schema)


def test_a_schema_beyond_the_table_is_summed_up(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a", config=CONFIG, input_schema=BEYOND)
    text = text_of(admin_client, tool)
    assert (
        "The table cannot show all of this schema (oneOf in payment). The schema is"
        " kept exactly as it is; edit it as JSON."
    ) in text
    assert '<th scope="row">payment</th>' in text
    assert 'value="table" disabled' in text
    typed = '{"type": "object", "properties": {"a": {"type": "string"}}}'
    save(admin_client, tool, **{"input_schema-json": typed})
    assert tool.input_schema == typed


PARAMETER = "input_schema-0-"
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"default": "x"}, "A parameter needs a name."),
    ({"name": "a b"}, "“a b” cannot name a parameter: only letters, digits and"),
    ({"name": "\u202ea"}, "U+202E"),
    ({"name": "a", "description": "\u202e"}, "U+202E"),
    (
        {"name": "a", "type": "integer", "most": "14", "default": "30"},
        "The value 30 is above the largest, 14.",
    ),
    ({"name": "a", "type": "integer", "default": "x"}, "“x” is not a whole number."),
    ({"name": "a", "type": "integer", "most": "x"}, "“x” is not a number."),
    ({"name": "a", "type": "integer", "most": "x", "least": "y"}, "“y” is not a"),
    ({"name": "a", "type": "choice"}, "Write the choices, one in each line."),
    ({"name": "a", "type": "nothing"}, "Select a valid choice."),
]


@pytest.mark.parametrize(("typed", "said"), WRONG)
def test_what_is_wrong_with_a_parameter_is_told_in_its_row(
    admin_client: Client, typed: dict[str, str], said: str
) -> None:
    sent = {f"{PARAMETER}{name}": value for name, value in typed.items()}
    response = fill_in(admin_client, form_page("tool"), name="a", text="a", **sent)
    found = errors(response)
    assert set(found) == {"input_schema"}
    assert said in found["input_schema"]
    # Nothing is lost.
    assert shown_values(response)[f"{PARAMETER}{next(iter(typed))}"] in typed.values()


def test_json_errors_name_their_line(admin_client: Client) -> None:
    wrong = '{\n"type": "object",\n"require"'
    typed = {"name": "a", "text": "a", "output_schema": wrong}
    found = errors(fill_in(admin_client, form_page("tool"), **typed))
    assert "Line 3: This is not JSON. A colon is missing." in found["output_schema"]
    typed["output_schema"] = '{"type": "object",\r\n"require": []}'
    found = errors(fill_in(admin_client, form_page("tool"), **typed))
    assert "Line 2: “require” is not" in found["output_schema"]


def test_both_changed_is_asked_and_answered(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a", config=CONFIG, input_schema=SCHEMA)
    url = page_of(tool)
    typed = {
        "input_schema-0-name": "y",
        "input_schema-json": '{"type": "object", "properties": {"x": {}}}',
    }
    response = fill_in(admin_client, url, **typed)
    said = "You changed both the table and the JSON. Choose which to keep."
    assert errors(response) == {"input_schema": said}
    # Nothing is lost, and nobody is asked only once.
    response = fill_in_again(admin_client, url, response)
    assert errors(response) == {"input_schema": said}
    for way, names in (("table", ["y", "a"]), ("json", ["x"])):
        keep = {"input_schema-keep": way, "opened_version": tool.lock_version}
        assert saved(fill_in_again(admin_client, url, response, **keep))
        tool.refresh_from_db()
        assert list(tool.json("input_schema")["properties"]) == names


def test_a_schema_and_hints_come_back(admin_client: Client) -> None:
    typed = {
        "name": "greet",
        "text": "Hello, {{who}}!",
        "input_schema-json": '{"type": "object", "properties": {"who": {}}}',
        "changes": "reads",
    }
    row = add(admin_client, Tool, **typed)
    assert row.input_schema == typed["input_schema-json"]
    assert (row.read_only, row.destructive, row.open_world) == (True, None, False)
    assert shown_values(admin_client.get(page_of(row)))["changes"] == "reads"
    save(admin_client, row, **{"changes-open_world": "on"})
    assert (row.read_only, row.open_world) == (True, True)


def test_a_function_tool_has_hints_too(admin_client: Client) -> None:
    typed = {"name": "a", "function": "shop.find", "changes": "adds"}
    row = add(admin_client, Tool, "function", **typed)
    assert (row.read_only, row.destructive) == (False, False)
    save(admin_client, row, changes="reads", function="shop.policy")
    assert (row.read_only, row.json("config")) == (True, {"function": "shop.policy"})


@pytest.mark.parametrize("hints", [(None,) * 4, (True, True, False, None)])
def test_hints_that_no_choice_shows_are_kept(
    admin_client: Client, hints: tuple[bool | None, ...]
) -> None:
    columns = dict(zip(Tool.HINTS, hints, strict=True))
    tool = Tool.objects.create(name="a", config=CONFIG, **columns)
    save(admin_client, tool, title="A")
    assert {name: getattr(tool, name) for name in columns} == columns


def test_a_fourth_choice_is_refused(admin_client: Client) -> None:
    typed = {"name": "a", "text": "a", "changes": "x"}
    found = errors(fill_in(admin_client, form_page("tool"), **typed))
    assert found == {"changes": "Choose one of the three."}


def test_the_parameters_of_a_function_are_its_own(admin_client: Client) -> None:
    tool = Tool.objects.create(
        name="a", kind="function", config='{"function": "shop.find"}'
    )
    response = admin_client.get(page_of(tool))
    shown, text = shown_values(response), response.content.decode()
    assert shown["input_schema-as"] == "own"
    assert shown["input_schema-0-name"] == "customer"
    assert "tests.admin.conftest.functions" in text
    assert "conftest.py:" in text
    save(admin_client, tool, title="A")
    assert tool.input_schema == ""

    save(admin_client, tool, **{"input_schema-0-description": "Whose orders"})
    properties = tool.json("input_schema")["properties"]
    assert properties["customer"]["description"] == "Whose orders"

    save(admin_client, tool, **{"input_schema-as": "own"})
    assert tool.input_schema == ""
    # The choice alone makes them the row's own.
    save(admin_client, tool, **{"input_schema-as": "table"})
    assert tool.json("input_schema")["required"] == ["customer"]


def test_a_copy_keeps_what_nobody_edited(admin_client: Client) -> None:
    tool = picture(input_schema=BEYOND)
    typed = {"name": "b", "_saveasnew": "Save as new"}
    assert saved(fill_in(admin_client, page_of(tool), text="a", **typed))
    copy = Tool.objects.get(name="b")
    assert copy.json("input_schema") == json.loads(BEYOND)
    assert copy.json("config")["content"][1] == IMAGE


EVIL = "</textarea></script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>"


def test_markup_stays_text(admin_client: Client) -> None:
    tool = Tool.objects.create(
        name="a",
        title=EVIL,
        description=EVIL,
        config=json.dumps({"content": [{"type": "text", "text": EVIL}]}),
        input_schema=json.dumps(
            {"type": "object", "properties": {EVIL: {"description": EVIL}}}
        ),
    )
    beyond = json.dumps({"properties": {EVIL: {"oneOf": [], "description": EVIL}}})
    url = page_of(tool)
    for response in (
        admin_client.get(url),
        admin_client.get(page_of(Tool.objects.create(name="b", input_schema=beyond))),
        fill_in(admin_client, url, name="a b"),
        fill_in(admin_client, url, name="a", opened_version="7", tags=EVIL),
        fill_in(admin_client, url, **{"input_schema-0-name": EVIL + "2"}),
    ):
        text = response.content.decode()
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert "&lt;img src=x onerror" in text


def test_a_content_of_many_blocks_is_edited_as_json(admin_client: Client) -> None:
    config = '{ "content": [{"type": "text", "text": "a"}], "is_error": true }'
    tool = Tool.objects.create(name="a", config=config)
    response = admin_client.get(page_of(tool))
    said = "The answer is more than a text and a file."
    assert said in response.content.decode()
    shown = shown_values(response)
    assert "text" not in shown
    assert json.loads(shown["config"])["is_error"] is True
    save(admin_client, tool, title="A")
    assert (tool.title, tool.config) == ("A", config)
    save(admin_client, tool, config='{"content": [{"type": "text", "text": "b"}]}')
    assert shown_values(admin_client.get(page_of(tool)))["text"] == "b"


PNG = b"\x89PNG\r\n\x1a\n"
TEXT = {"type": "text", "text": "Our sign, {{who}}"}
IMAGE = {"type": "image", "upload": digest(PNG), "mimeType": "image/png"}
TERMS = {"uri": "attachment:///terms.pdf", "mimeType": "application/pdf"}
PDF = {"type": "resource", "resource": {**TERMS, "upload": digest(b"%PDF")}}


def logo() -> SimpleUploadedFile:
    return SimpleUploadedFile("logo.png", PNG, "image/png")


def terms() -> SimpleUploadedFile:
    return SimpleUploadedFile("terms.pdf", b"%PDF", "application/pdf")


def picture(**columns: str) -> Tool:
    """Save a tool that answers with a text and an image."""
    Blob.objects.keep(PNG, "image/png")
    columns.setdefault("config", json.dumps({"content": [TEXT, IMAGE]}))
    schema = '{"type": "object", "properties": {"who": {"type": "string"}}}'
    columns.setdefault("input_schema", schema)
    return Tool.objects.create(name="a", **columns)


def test_a_file_beside_the_text_needs_no_json(admin_client: Client) -> None:
    typed: dict[str, Any] = {
        "name": "a",
        "text": "Our sign, {{who}}",
        "input_schema-0-name": "who",
        "file": logo(),
    }
    tool = add(admin_client, Tool, **typed)
    assert tool.json("config") == {"content": [TEXT, IMAGE]}
    assert bytes(Blob.objects.get().content) == PNG
    response = admin_client.get(page_of(tool))
    text = response.content.decode()
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in text
    assert 'enctype="multipart/form-data"' in text
    assert shown_values(response)["text"] == "Our sign, {{who}}"

    save(admin_client, tool, file=terms())
    assert tool.json("config") == {"content": [TEXT, PDF]}
    save(admin_client, tool, **{"file-remove": "on"})
    assert tool.json("config") == {"content": [TEXT]}


def test_a_file_can_be_all_of_the_answer(admin_client: Client) -> None:
    tool = add(admin_client, Tool, name="a", file=terms())
    assert tool.json("config") == {"content": [PDF]}
    save(admin_client, tool, text="b")
    assert tool.json("config") == {"content": [{"type": "text", "text": "b"}, PDF]}
    save(admin_client, tool, text="", **{"file-remove": "on"})
    assert tool.json("config") == {}


def test_a_file_that_nobody_touched_keeps_the_bytes_of_the_config(
    admin_client: Client,
) -> None:
    config = f'{{ "content": [{json.dumps(TEXT)}, {json.dumps(IMAGE)} ] }}'
    tool = picture(config=config)
    save(admin_client, tool, title="A")
    assert (tool.title, tool.config) == ("A", config)


def test_what_is_wrong_with_a_file_is_told_at_it(admin_client: Client) -> None:
    typed = {"name": "a", "text": "b", "file": logo(), "file-type": "png"}
    response = fill_in(admin_client, form_page("tool"), **typed)
    found = errors(response)
    assert set(found) == {"file"}
    assert "“png” is not a media type" in found["file"]
    # Nothing is lost but what browsers do not send twice.
    assert "Choose the file again." in response.content.decode()
    shown = shown_values(response)
    assert (shown["text"], shown["file-type"]) == ("b", "png")
    assert not Blob.objects.exists()


def test_a_wrong_text_beside_a_file_is_told_at_the_text(admin_client: Client) -> None:
    url = page_of(picture())
    assert set(errors(fill_in(admin_client, url, text="{{whom}}"))) == {"text"}


def test_a_file_that_is_gone_is_told_at_it(admin_client: Client) -> None:
    url = page_of(picture())
    opened = admin_client.get(url)
    Blob.objects.all().delete()
    found = errors(fill_in_again(admin_client, url, opened, text=""))
    assert found == {"file": "The file is no longer stored. Choose it again."}
    assert "The file is no longer stored." in admin_client.get(url).content.decode()


@override_settings(MCP={"LIMITS": {"body": 7}})
def test_a_file_has_a_limit(admin_client: Client) -> None:
    found = errors(fill_in(admin_client, form_page("tool"), name="a", file=logo()))
    assert "The file is 8" in found["file"]


def test_a_file_or_json_and_not_both(admin_client: Client) -> None:
    typed = {"name": "a", "file": logo(), "config": CONFIG}
    found = errors(fill_in(admin_client, form_page("tool"), **typed))
    said = "Fill in either the text and the file or this field, not both."
    assert found == {"config": said}


def test_a_file_goes_on_top_of_what_someone_else_saved(admin_client: Client) -> None:
    tool = picture()
    url = page_of(tool)
    opened = admin_client.get(url)
    tool.title = "Theirs"
    tool.save()
    typed = {"file-uri": "x:logo", "_mine": "Keep"}
    merged = fill_in_again(admin_client, url, opened, **typed)
    assert shown_values(merged)["title"] == "Theirs"
    assert saved(fill_in_again(admin_client, url, merged))
    tool.refresh_from_db()
    resource = {"uri": "x:logo", "mimeType": "image/png", "upload": digest(PNG)}
    assert tool.json("config") == {
        "content": [TEXT, {"type": "resource", "resource": resource}]
    }


def test_clients_get_the_file(admin_client: Client) -> None:
    stored = stored_definition(picture())
    assert isinstance(stored.definition, ToolDefinition)
    run = usable_kinds(mcp)["text"].tool_runnable(
        stored.definition, stored.config, stored.uploads
    )
    output = run.convert(run.run(**run.bind({"who": "Ada"})))
    assert output.content == [Text("Our sign, Ada"), Image(PNG, "image/png")]
