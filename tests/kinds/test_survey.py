from __future__ import annotations

from typing import Any, TypeVar

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.interface.definitions import Definition
from mcp_app.interface.server import ServerDefinition
from mcp_app.kinds.survey import SurveyFinding, code_findings, row_findings
from mcp_app.models import Prompt, PublishedRow, Server, Tool
from tests.published import published

Row = TypeVar("Row", bound=PublishedRow)


@pytest.fixture
def registry() -> Registry:
    registry = Registry()

    @registry.tool(tags=["a"])
    def undescribed() -> str:
        return ""

    @registry.resource("x:returns", mime_type="text/plain")
    def returns() -> str:
        """What may go back."""
        return ""

    @registry.resource("x:orders/{id}")
    def order(id: str) -> str:
        return id

    @registry.prompt
    def complaint(product: str) -> str:
        """Answers a complaint."""
        return product

    return registry


def told(surveyed: SurveyFinding) -> tuple[str, str]:
    about = surveyed.about
    name = about.name if isinstance(about, Definition) else about.slug
    return name, surveyed.finding.rule


def test_all_that_code_declares_is_looked_at(registry: Registry) -> None:
    found = list(code_findings(registry))
    assert [told(each) for each in found] == [
        ("undescribed", "description-missing"),
        ("undescribed", "changes-unsaid"),
        ("undescribed", "title-missing"),
        ("undescribed", "outside-unsaid"),
        ("order", "description-missing"),
        ("complaint", "argument-description-missing"),
    ]
    assert all(each.in_code for each in found)
    assert found[0].source.endswith("undescribed")


def make(model: type[Row], **columns: Any) -> Row:
    return published(model(**columns))


@pytest.mark.django_db
def test_rows_are_looked_at_once(registry: Registry) -> None:
    make(Server, slug="second", selection="tags", tags="a")
    row = make(Tool, name="weather", config="{}", tags="a", read_only=True)
    make(
        Prompt,
        name="sorry",
        description="Says sorry.",
        config='{"messages": [{"content": {"type": "text", "text": "Sorry"}}]}',
    )
    found = list(row_findings(registry))
    assert [told(each) for each in found] == [
        ("weather", "kind"),
        ("weather", "description-missing"),
        ("weather", "title-missing"),
        ("weather", "outside-unsaid"),
    ]
    assert {each.source for each in found} == {f"tool {row.pk}"}
    assert not any(each.in_code for each in found)


@pytest.mark.django_db
def test_servers_are_looked_at_with_what_they_offer(registry: Registry) -> None:
    make(Server, slug="second", selection="tags", tags="a")
    make(Tool, name="undescribed", tags="a")
    make(Prompt, name="complaint")
    twice = {
        (each.about.slug, each.finding.message)
        for each in row_findings(registry)
        if isinstance(each.about, ServerDefinition)
    }
    # The prompt of code has no tag, so the second server has one of them.
    assert twice == {
        ("default", "Another tool of the server default is called undescribed."),
        ("default", "Another prompt of the server default is called complaint."),
        ("second", "Another tool of the server second is called undescribed."),
    }


@pytest.mark.django_db
def test_a_server_is_judged_by_what_is_laid_over_the_code(registry: Registry) -> None:
    def said() -> list[str]:
        return [
            each.finding.rule
            for each in row_findings(registry)
            if isinstance(each.about, ServerDefinition)
        ]

    overlay = make(Tool, name="undescribed", source="code", description="Says it all.")
    make(Tool, name="other", description="Says it all.")
    assert said() == ["description-twice"]
    overlay.description = "Says something else."
    overlay.save()
    published(overlay)
    assert said() == []
