from __future__ import annotations

from typing import Annotated, Any

import pytest
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db.models import Model
from django.test import override_settings
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import Field

from mcp_app.catalog.registry import Registry
from mcp_app.checks import TAG, definitions
from mcp_app.checks.definitions import PER_RULE, check_definitions, check_rows
from mcp_app.models import Server, Tool
from tests.models.missing import ELSEWHERE, missing
from tests.published import published


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """What code declares, in the place of the drill's."""
    registry = Registry()
    monkeypatch.setattr(definitions, "mcp", registry)
    return registry


def test_what_lint_says_of_code(registry: Registry) -> None:
    @registry.tool(description="Finds orders.")
    def find(customer: str) -> str:
        return customer

    changes, parameter = check_definitions(None)
    assert changes.id == "mcp_app.I110"
    assert changes.level == checks.INFO
    assert changes.msg == (
        f"The tool “find” ({__name__}.{find.__qualname__}), read_only: Say whether "
        "this tool changes anything."
    )
    assert changes.hint == "Set read_only=True, or read_only=False and destructive=…."
    assert parameter.id == "mcp_app.I120"
    assert parameter.hint


def test_well_declared_code_is_left_alone(registry: Registry) -> None:
    @registry.tool(read_only=True)
    def find() -> str:
        """Finds orders."""
        return ""

    assert check_definitions(None) == []


def test_many_findings_are_counted(registry: Registry) -> None:
    for number in range(PER_RULE + 3):

        @registry.tool(f"tool_{number}", read_only=True)
        def undescribed() -> str:
            return ""

    found = check_definitions(None)
    assert [each.id for each in found] == ["mcp_app.I106"] * PER_RULE
    assert [each for each in found if "more of this kind" in each.msg] == [found[-1]]
    assert found[-1].msg.endswith(" And 3 more of this kind.")


def test_as_many_as_are_shown_are_not_counted(registry: Registry) -> None:
    for number in range(PER_RULE):

        @registry.tool(f"tool_{number}", read_only=True)
        def undescribed() -> str:
            return ""

    found = check_definitions(None)
    assert len(found) == PER_RULE
    assert not any("more of this kind" in each.msg for each in found)


@pytest.mark.parametrize("given", [{"LIMITS": "of"}, {"LIMITS": {"SCHEMA": "big"}}])
def test_with_wrong_settings_nothing_is_linted(
    given: dict[str, Any], registry: Registry
) -> None:
    @registry.tool
    def undescribed() -> str:
        return ""

    assert check_definitions(None)
    with override_settings(MCP=given):
        assert check_definitions(None) == []


def test_what_hides_in_code_is_a_warning(registry: Registry) -> None:
    @registry.tool(read_only=True)
    def look(
        place: Annotated[str, Field(description=gettext_lazy("Where\u200b."))],
    ) -> str:
        """Looks at a place."""
        return place

    [found] = check_definitions(None)
    assert (found.id, found.level) == ("mcp_app.W105", checks.WARNING)
    assert "$.properties.place.description: There is a hidden character" in found.msg
    assert found.hint == "Write the text again, without the character."


def test_checks_speak_english(registry: Registry) -> None:
    @registry.tool(description="a " * 600, read_only=True)
    def long() -> str:
        return ""

    with translation.override("de"):
        [found] = check_definitions(None)
    assert "has 1200 characters" in found.msg


@pytest.mark.usefixtures("registry")
def test_without_its_option_no_statement_is_made() -> None:
    # The test has no access to a database: a statement would raise.
    assert check_rows(None) == []
    assert check_rows(None, databases=[]) == []
    assert check_rows(None, databases=["other"]) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
def test_what_lint_says_of_rows() -> None:
    row = published(Tool(name="weather", description="Tells the weather."))
    Tool.objects.create(name="not_published")
    Server.objects.update(instructions="word " * 501)
    published(Server.objects.get())
    instructions, kind, changes = sorted(
        check_rows(None, databases=["default"]), key=lambda each: each.id or ""
    )
    assert (kind.id, kind.level) == ("mcp_app.W101", checks.WARNING)
    assert kind.msg.startswith(f"The tool “weather” (tool {row.pk}), config: ")
    assert (changes.id, changes.hint) == ("mcp_app.W110", None)
    assert (instructions.id, instructions.level) == ("mcp_app.I130", checks.INFO)
    assert instructions.msg.startswith("The server “default” (server default), instr")


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
def test_the_command_looks_at_rows(capsys: pytest.CaptureFixture[str]) -> None:
    published(Tool(name="weather"))
    call_command("check")
    assert "weather" not in capsys.readouterr().err
    call_command("check", tags=[TAG], databases=["default"])
    assert "(mcp_app.W106) The tool “weather” (tool " in capsys.readouterr().err
    with pytest.raises(SystemCheckError, match=r"W106"):
        call_command("check", tags=[TAG], databases=["default"], fail_level="WARNING")


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("model", "found"),
    [
        # As before the first `migrate`: nothing is there to be told of.
        (Server, []),
        # As before the `migrate` of an update.
        (Tool, ["mcp_app.I002"]),
    ],
)
def test_tables_that_are_missing(model: type[Model], found: list[str]) -> None:
    with missing(model):
        messages = check_rows(None, databases=["default"])
    assert [each.id for each in messages] == found
    assert all(ELSEWHERE in each.msg for each in messages)
    # The transaction around it still works.
    assert Tool.objects.count() == 0
