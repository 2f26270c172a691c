"""Rows for what code declares."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import override_settings

from mcp_app.catalog.registry import Registry, mcp
from mcp_app.catalog.schema_lint import HIDDEN
from mcp_app.models import (
    Change,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    State,
    Tool,
)
from mcp_app.models.definitions import Source
from mcp_app.models.versions import DefinitionVersion
from mcp_app.publishing import overlays, publication, row_findings
from mcp_app.publishing.overlays import make_overlays, reset_columns
from mcp_app.publishing.row_findings import store_all_findings, store_findings
from tests.models.recording import as_committed
from tests.published import published
from tests.publishing.test_publication import CONTENT, REGISTRY, publish, tool

pytestmark = pytest.mark.django_db

APP = "mcp_app"


@pytest.fixture
def registry() -> Registry:
    made = Registry()

    @made.tool
    async def find(customer: str) -> str:
        return customer

    @made.resource("shop://list")
    async def orders() -> str:
        return ""

    @made.resource("shop://orders/{number}")
    async def order(number: str) -> str:
        return number

    @made.prompt
    async def complain(product: str) -> str:
        return product

    @made.function("shop.find")
    async def prepared(customer: str) -> str:
        return customer

    return made


def test_each_declaration_gets_a_row_that_changes_nothing(registry: Registry) -> None:
    assert make_overlays(registry) == 4
    rows = [
        Tool.objects.get(name="find"),
        Resource.objects.get(uri="shop://list"),
        ResourceTemplate.objects.get(uri_template="shop://orders/{number}"),
        Prompt.objects.get(name="complain"),
    ]
    for row in rows:
        assert (row.source, row.state) == (Source.CODE, State.PUBLISHED)
        assert row.working_content() == {}
    assert not Change.objects.exists()
    assert make_overlays(registry) == 0


def test_a_row_that_staff_made_keeps_its_name_and_is_reported(
    registry: Registry,
) -> None:
    row = published(Tool(name="find", read_only=True, description="Finds."))
    assert make_overlays(registry) == 3
    store_findings(row, registry)
    assert row.state == State.BROKEN
    assert "declared in code" in row.broken


def test_what_vanished_is_broken_and_not_lost(registry: Registry) -> None:
    make_overlays(registry)
    row = Tool.objects.get()
    row.title = "Better"
    row.save()
    published(row)
    registry.tools.clear()
    assert store_all_findings(registry) == 1
    row.refresh_from_db()
    assert (row.state, row.title) == (State.BROKEN, "Better")
    assert "no longer in the code" in row.broken


def test_a_deployment_finds_a_kind_that_is_gone_and_one_that_is_back() -> None:
    kinds = {"KINDS": {"station": "tests.kinds.stations.Station"}}
    registry = Registry()
    with override_settings(MCP=kinds):
        config = '{"station": "hill"}'
        row = published(Tool(name="wind", kind="station", config=config))
    assert store_all_findings(registry, only_code=True) == 1
    row.refresh_from_db()
    assert (row.state, row.broken) == (State.BROKEN, "There is no kind “station”.")
    with override_settings(MCP=kinds):
        assert store_all_findings(registry, only_code=True) == 0
    row.refresh_from_db()
    assert (row.state, row.broken) == (State.PUBLISHED, "")


def test_a_function_that_changed_its_signature(registry: Registry) -> None:
    schema = '{"type": "object", "properties": {"customer": {"type": "string"}}}'
    config = '{"function": "shop.find"}'
    row = published(Tool(name="a", kind="function", config=config, input_schema=schema))
    store_findings(row, registry)
    assert "customer" in row.broken
    row.input_schema = ""
    row.save()
    published(row)
    store_findings(row, registry)
    assert not row.broken
    # The working copy may be wrong: it is not served.
    row.config = '{"function": "gone"}'
    row.save()
    judged = store_findings(row, registry)
    assert judged.to_fix[0].rule == "kind"
    assert row.state == State.CHANGED


def test_what_hides_in_code_holds_no_overlay_up(registry: Registry) -> None:
    """Only a developer can fix it; what staff say in its place is theirs."""

    @registry.tool(read_only=True, title="Look\u200b")
    async def look(place: str = "\u202e") -> str:
        """Looks at a place."""
        return place

    make_overlays(registry)
    row = Tool.objects.get(name="look")
    judged = store_findings(row, registry)
    hidden = [each.field for each in judged.advices if each.rule == HIDDEN]
    assert hidden == ["title", "input_schema"]
    assert (row.to_fix, row.broken, row.state) == (0, "", State.PUBLISHED)
    row.title = "Look"
    row.save()
    judged = store_findings(row, registry)
    assert [e.field for e in judged.advices if e.rule == HIDDEN] == ["input_schema"]
    row.title = "Lo\u200bok"
    judged = store_findings(row, registry)
    assert [each.field for each in judged.to_fix] == ["title"]


def test_reckoning_is_nobodys_change(registry: Registry) -> None:
    row = published(Tool(name="a"))
    as_committed()
    store_findings(row, registry)
    row.refresh_from_db()
    assert (row.to_fix, row.lock_version) == (3, 0)
    assert row.tokens > 0
    assert not Change.objects.exists()


def test_the_command(
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(mcp, "declared_tools", registry.tools)
    published(Tool(name="a", kind="function", config='{"function": "gone"}'))
    call_command("mcp_sync")
    said = capsys.readouterr().out
    assert "Definitions in code that got a row: 1." in said
    assert "Broken definitions: 1." in said
    Tool.objects.filter(name="a").delete()
    call_command("mcp_sync")
    assert capsys.readouterr().out.splitlines() == [
        "All definitions in code have their rows already.",
        "No definition is broken.",
    ]


def test_a_migration_makes_them(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlays, "mcp", registry)
    overlays._handle_migration("default")
    assert not Tool.objects.exists()
    overlays._handle_migration("default", plan=[])
    assert Tool.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_nothing_is_made_between_two_migrations(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a state that is not the newest lacks cannot be read."""
    made: list[object] = []
    monkeypatch.setattr(overlays, "make_overlays", made.append)
    recorder = MigrationRecorder(connection)
    app, newest = max(each for each in recorder.applied_migrations() if each[0] == APP)
    recorder.record_unapplied(app, newest)
    try:
        overlays._handle_migration(using="default", plan=[])
        assert made == []
    finally:
        recorder.record_applied(app, newest)
    with monkeypatch.context() as elsewhere:
        # A schema of a tenant has the record, and no table.
        elsewhere.setattr(DefinitionVersion._meta, "db_table", "in_no_schema")
        overlays._handle_migration(using="default", plan=[])
        assert made == []
    overlays._handle_migration(using="default", plan=[])
    assert made == [mcp]
    # Neither does `flush` make any, nor does another database.
    overlays._handle_migration(using="default")
    overlays._handle_migration(using="other", plan=[])
    assert made == [mcp]


def test_only_named_columns_are_reset(registry: Registry) -> None:
    make_overlays(registry)
    user = User.objects.create_user("ana")
    changes = {"title": "New", "timeout": 3.0, "position": 7, "tags": "a"}
    Tool.objects.filter(name="find").update(**changes, to_fix=9)
    row = Tool.objects.get(name="find")
    reset_columns(row, ["title", "timeout", "position"], registry, author=user)
    row.refresh_from_db()
    assert (row.title, row.timeout, row.position) == ("", None, 0)
    assert (row.tags, row.updated_by, row.to_fix < 9) == ("a", user, True)


# -- findings --------------------------------------------------------------------------


def test_a_content_that_no_reader_takes() -> None:
    row = Tool.objects.create(name="a", icons='[{"src": "ftp://x"}]')
    judged = row_findings.judge_row_content(row, row.working_content(), REGISTRY)
    assert [each.rule for each in judged.to_fix] == ["kind"]


def test_servers_are_judged_too() -> None:
    server = Server.objects.create(slug="a", instructions="word " * 600)
    judged = row_findings.judge_row_content(server, server.working_content(), REGISTRY)
    assert [each.rule for each in judged.advices] == ["instructions-long"]


def test_publishing_stores_the_findings() -> None:
    row = tool()
    publish(row)
    row.refresh_from_db()
    judged = row_findings.judge_row_content(row, row.working_content(), REGISTRY)
    assert (row.tokens, row.advices) == (judged.tokens, len(judged.advices))
    assert row.tokens > 0


def test_rolling_back_stores_what_is_broken_no_more() -> None:
    row = published(Tool(name="a", config=CONTENT))
    version = row.published
    assert version is not None
    Tool.objects.filter(pk=row.pk).update(broken="It was gone.", tokens=0)
    publication.roll_back(row, version, Registry(), author=None, number=1)
    row.refresh_from_db()
    assert (row.broken, row.tokens > 0) == ("", True)
