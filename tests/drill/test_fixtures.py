"""The rows of the fixture set on a real database."""

from __future__ import annotations

import json

import pytest

from mcp_app.models import Change, Prompt, Resource, ResourceTemplate, Server, Tool
from tests.drill.contents import SCHEMA_2020_12
from tests.drill.fixtures import write_fixtures
from tests.drill.rows import TOOLS

pytestmark = pytest.mark.django_db

PAGE = 100


def test_server_is_public() -> None:
    write_fixtures()
    assert Server.objects.get(slug="default").access == "public"


def test_all_fit_on_the_first_page() -> None:
    write_fixtures()
    for model in (Tool, Resource, ResourceTemplate, Prompt):
        assert 0 < model._default_manager.count() <= PAGE


def test_first_tool_needs_no_argument_and_first_resource_can_be_read() -> None:
    write_fixtures()
    tool, resource = Tool.objects.all()[0], Resource.objects.all()[0]
    assert tool.name == "test_simple_text"
    assert resource.uri == "test://static-text"


def test_later_fixtures_follow_the_earlier_ones() -> None:
    write_fixtures()
    names = list(Tool.objects.values_list("name", flat=True))
    assert names[-3:] == ["drill_ask_url", "drill_ask_url_sync", "test_resource_link"]
    assert len(names) == len(set(names)) == len(TOOLS)


def test_every_row_has_a_name_and_a_description() -> None:
    write_fixtures()
    for model in (Tool, Resource, ResourceTemplate, Prompt):
        for row in model._default_manager.all():
            assert row.name
            assert row.description


def test_schema_is_stored_as_it_is() -> None:
    write_fixtures()
    stored = Tool.objects.get(name="json_schema_2020_12_tool").input_schema
    assert json.dumps(json.loads(stored)) == json.dumps(SCHEMA_2020_12)


def test_second_time_changes_nothing() -> None:
    write_fixtures(2)
    before = Change.objects.count()
    write_fixtures(2)
    assert Change.objects.count() == before


def test_altered_and_missing_rows_are_put_right() -> None:
    write_fixtures()
    Tool.objects.filter(name="test_simple_text").update(position=5, description="Odd.")
    Prompt.objects.filter(name="test_simple_prompt").delete()
    Server.objects.filter(slug="default").update(access="")
    write_fixtures()
    tool = Tool.objects.get(name="test_simple_text")
    assert (tool.position, tool.description) == (0, "Returns a text.")
    assert Prompt.objects.filter(name="test_simple_prompt").exists()
    assert Server.objects.get(slug="default").access == "public"


def test_plain_tools_come_last_and_are_only_added() -> None:
    write_fixtures(3)
    write_fixtures(2)
    names = list(Tool.objects.values_list("name", flat=True))
    assert names[-3:] == ["plain_00001", "plain_00002", "plain_00003"]
    assert names.count("plain_00001") == 1
