"""What lint says of a row, and what is stored of that by those who publish."""

from __future__ import annotations

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.models import Server, Session, Tool
from mcp_app.publishing import overlays, publication
from tests.published import published
from tests.publishing.test_publication import CONTENT, REGISTRY, publish, tool

pytestmark = pytest.mark.django_db


def test_a_content_that_no_reader_takes() -> None:
    row = Tool.objects.create(name="a", icons='[{"src": "ftp://x"}]')
    judged = overlays.judge(row, row.working_content(), REGISTRY)
    assert [each.rule for each in judged.to_fix] == ["kind"]


def test_servers_are_judged_too() -> None:
    server = Server.objects.create(slug="a", instructions="word " * 600)
    judged = overlays.judge(server, server.working_content(), REGISTRY)
    assert [each.rule for each in judged.advices] == ["instructions-long"]


def test_only_what_is_published_can_be_judged() -> None:
    with pytest.raises(TypeError, match="Session"):
        overlays.judge(Session(), {}, REGISTRY)  # type: ignore[arg-type]


def test_publishing_stores_the_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who publishes has to remember it, and lint runs once."""
    row = tool()
    judged: list[str] = []
    judge_content = overlays.judge_content

    def counted(row: Tool, *more: object) -> overlays.Findings:
        judged.append(row.name)
        return judge_content(row, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(overlays, "judge_content", counted)
    monkeypatch.setattr(publication, "judge_content", counted)
    publish(row)
    row.refresh_from_db()
    assert judged == [row.name]
    assert row.tokens > 0
    assert row.advices == len(
        judge_content(row, row.working_content(), REGISTRY, {}).advices
    )


def test_rolling_back_stores_what_is_broken_no_more() -> None:
    row = published(Tool(name="a", config=CONTENT))
    version = row.published
    assert version is not None
    Tool.objects.filter(pk=row.pk).update(broken="It was gone.", tokens=0)
    publication.roll_back(row, version, Registry(), author=None, number=1)
    row.refresh_from_db()
    assert (row.broken, row.tokens > 0) == ("", True)
