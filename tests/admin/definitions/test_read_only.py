from __future__ import annotations

import json
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from mcp_app.catalog.open_models import open_model
from mcp_app.catalog.registry import mcp
from mcp_app.models import Blob, DefinitionRow, Prompt, Resource, ResourceTemplate, Tool
from tests.admin.pages import Staff, page, page_of, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("functions")]

EVIL = "<script>alert(1)</script>"
FIND = {"kind": "function", "config": '{"function": "shop.find"}'}


@pytest.fixture
def looking(staff: Staff) -> Client:
    """Log someone in who may look at everything."""
    rights = Permission.objects.filter(content_type__app_label="mcp_app")
    names = rights.filter(codename__startswith="view_")
    return staff(*names.values_list("codename", flat=True))


def read(client: Client, row: DefinitionRow) -> str:
    text = text_of(client, row)
    assert EVIL not in text
    return unescape(text)


def test_a_text_tool(looking: Client) -> None:
    tool = Tool.objects.create(
        name="a",
        config='{"content": [{"type": "text", "text": "<script>alert(1)</script>"}]}',
        read_only=False,
        destructive=False,
        open_world=True,
    )
    text = read(looking, tool)
    assert f"{EVIL}</textarea>" in text
    assert 'value="adds" checked' in text
    assert 'name="changes-open_world" checked' in text
    assert (
        '<fieldset class="mcp-plain mcp-fixed" disabled><div class="mcp-sheet"' in text
    )
    assert 'name="_save"' not in text


def test_a_look_up_is_in_words_and_nothing_is_said_of_rights(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_model(User, fields=["username"], rows="all")
    monkeypatch.setattr(mcp, "open_models", {"auth.User": opened})
    config = {"model": "auth.User", "fields": ["username"], "limit": 5}
    tool = Tool.objects.create(name="a", kind="query", config=json.dumps(config))
    looking = staff("view_tool")
    text = read(looking, tool)
    assert '<tr><th scope="row">At most</th><td>5 rows</td></tr>' in text
    assert "Some fields cannot be changed here" not in text
    listed = text_of(looking, page("tool"))
    assert page_of(tool) in listed
    assert page_of(tool, "try") not in listed


def test_a_function_tool(looking: Client) -> None:
    tool = Tool.objects.create(name="a", **FIND)
    text = read(looking, tool)
    assert "shop.find: Find orders." in text
    assert "For developers" in text


def test_a_resource(looking: Client) -> None:
    row = Resource.objects.create(
        name="a",
        uri="x:a",
        config='{"text": "<script>alert(1)</script>"}',
        annotations='{"audience": ["assistant"], "priority": 0.8}',
    )
    text = read(looking, row)
    assert '<option value="assistant" selected>Models</option>' in text
    assert '<option value="0.8" selected>0.8</option>' in text
    assert f"{EVIL}</textarea>" in text


def test_a_template_and_a_prompt(looking: Client) -> None:
    row = ResourceTemplate.objects.create(name="a", uri_template="x:{a}")
    assert "x:{a}" in read(looking, row)
    prompt = Prompt.objects.create(
        name="a", config='{"messages": [{"content": {"type": "text", "text": "hey"}}]}'
    )
    assert ">hey</pre>" in read(looking, prompt)


def test_a_row_of_an_unknown_kind(looking: Client) -> None:
    tool = Tool.objects.create(name="a", kind="http", config='{"url": "x"}')
    assert '"url": "x"' in read(looking, tool)


def test_the_file_of_a_tool(looking: Client) -> None:
    picture = Blob.objects.keep(b"\x89PNG", "image/png").digest
    resource = {"uri": "x:logo", "mimeType": "image/png", "upload": picture}
    blocks = [{"type": "resource", "resource": resource}]
    tool = Tool.objects.create(name="a", config=json.dumps({"content": blocks}))
    text = read(looking, tool)
    assert "data:image/png;base64," in text
    assert 'value="x:logo"' in text


def test_suggestions_stand_by_the_names_of_variables(looking: Client) -> None:
    row = ResourceTemplate.objects.create(
        name="a",
        uri_template="x:{kind}/{number}",
        suggestions=json.dumps({"kind": ["order", EVIL], "gone": ["old"]}),
    )
    text = read(looking, row)
    assert "<legend>kind</legend>" in text
    assert f"order\n{EVIL}</textarea>" in text
    assert "<legend>number</legend>" in text
    assert "The address pattern has no gone, so these suggestions are not used." in text
    # The labels and the help are those of the form.
    assert "Address pattern:" in text
    assert "For example shop://orders/{number}." in text


def test_parameters_and_arguments_stand_in_their_editors(looking: Client) -> None:
    own = Tool.objects.create(name="b", **FIND)
    assert 'value="customer"' in read(looking, own)
    argument = {"name": "order", "title": EVIL, "suggestions": ["1042", "7"]}
    row = Prompt.objects.create(
        name="a",
        arguments=json.dumps([argument, {"name": "tone", "required": True}]),
        config='{"messages": [{"content": {"type": "text", "text": "{{order}}"}}]}',
        icons='[{"src": "https://example.com/a.png?\u200b"}]',
    )
    text = read(looking, row)
    assert f'name="arguments-0-title" value="{EVIL}"' in text
    assert "1042\n7</textarea>" in text
    # The messages stand there as they are written, too.
    assert '"text": "{{order}}"' in text
    assert "https://example.com/a.png?⟦U+200B⟧" in text
