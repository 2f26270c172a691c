"""What is looked at in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from pytest_django import Settings

from mcp_app.catalog.registry import mcp
from mcp_app.models import EventSubscription, Server, Stop, Worker
from mcp_app.models.stops import By, Scope
from mcp_app.workbench.checking import site_findings
from mcp_app.workbench.checking.findings import Grade
from mcp_app.workbench.checking.site_findings import (
    process_findings,
    server_findings,
    site_at_address,
)
from tests.admin.tasks.test_subscription_admin import subscription
from tests.admin.tasks.test_task_admin import task
from tests.events.conftest import registry
from tests.oauth.web import web as serving
from tests.published import published, stopped

pytestmark = pytest.mark.django_db


def worker(key: str, seen_ms: int = 2**50, **report: Any) -> None:
    Worker.objects.create(
        id=key,
        host="box",
        pid=1,
        started_ms=0,
        seen_ms=seen_ms,
        report=json.dumps(report),
    )


def grades() -> dict[str, Grade]:
    return {
        each.what: each.grade
        for each in process_findings()
        if each.rule in ("processes", "silent processes")
    }


def test_processes() -> None:
    assert [*grades().values()] == [Grade.UNKNOWN]
    # One of the release before tells its code alone.
    worker("a", code="x")
    assert [*grades().values()] == [Grade.UNKNOWN]
    worker("b", code="x", keys="1")
    worker("dead", 0, code="y", keys="2")
    found = grades()
    assert [*found.values()] == [Grade.GOOD, Grade.ADVICE]
    assert any("2" in what for what in found)
    worker("new", code="x", keys="1", release="9.0.0")
    assert [*grades().values()] == [Grade.PROBLEM, Grade.ADVICE]
    worker("c", code="y", keys="2")
    assert [*grades().values()][:2] == [Grade.PROBLEM, Grade.PROBLEM]


def test_what_the_settings_say_of_an_address(settings: Settings) -> None:
    settings.MCP = {"HOSTS": ["mcp.example.com"], "TRUSTED_PROXIES": 1}
    server = Server(slug="team", access="token")
    site = site_at_address("https://mcp.example.com:8000/mcp", server)
    assert site.hosts_line == ""
    assert site.trusts_proxies
    assert not site.signs_in
    assert site.slug == "team"


def test_the_lines_that_let_a_host_in(settings: Settings) -> None:
    """Nobody who is let in now is kept out by them."""

    def lines(url: str) -> tuple[str, str]:
        site = site_at_address(url, Server(slug="team", access="token"))
        return site.hosts_line, site.allowed_hosts_line

    settings.ALLOWED_HOSTS = ["www.example.com"]
    settings.MCP = {"HOSTS": ["mcp.example.com"]}
    assert lines("https://other.example.com:8443/mcp") == (
        'MCP["HOSTS"] = ["mcp.example.com", "other.example.com"]',
        'ALLOWED_HOSTS = ["www.example.com", "other.example.com"]',
    )
    assert lines("https://www.example.com/mcp")[1] == ""
    assert lines("https://[2001:DB8::1]/mcp")[0] == (
        'MCP["HOSTS"] = ["mcp.example.com", "[2001:db8::1]"]'
    )
    settings.MCP = {"PUBLIC_URL": "https://mcp.example.com/mcp"}
    assert lines("https://other.example.com/mcp")[0] == (
        'MCP["HOSTS"] = ["mcp.example.com", "other.example.com"]'
    )
    settings.MCP, settings.ALLOWED_HOSTS = {}, []
    settings.DEBUG = True
    assert lines("https://localhost/mcp") == ("", "")


def test_a_server_of_which_clients_get_nothing() -> None:
    server = Server.objects.create(slug="team", access="token")
    assert ["404" in each.what for each in server_findings(server)] == [True]
    published(server)
    assert server_findings(server) == []
    stop = Stop.objects.make(Scope.EVERYTHING, by=By("ana"))
    assert ["503" in each.what for each in server_findings(server)] == [True]
    Stop.objects.end([stop.pk], by=By("ana"))
    Stop.objects.make(Scope.CHANGES, by=By("ana"))
    assert server_findings(server) == []
    stopped(server)
    assert ["503" in each.what for each in server_findings(server)] == [True]


def test_who_may_sign_in(settings: Settings) -> None:
    url = "https://mcp.example.com/mcp"
    settings.MCP = {
        "PUBLIC_URL": url,
        "AUTHENTICATION": {"oauth": "mcp_app.authentication.oauth"},
    }
    assert site_at_address(url, Server(slug="team", access="oauth")).signs_in
    assert not site_at_address(url, Server(slug="team", access="public")).signs_in


def test_whether_documents_of_programs_can_be_fetched(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grades(access: str = "oauth", **options: Any) -> list[Grade]:
        settings.MCP = {
            "PUBLIC_URL": "https://mcp.example.com/mcp",
            "AUTHENTICATION": {"oauth": "mcp_app.authentication.oauth"},
            "OAUTH": {"ca": str(tmp_path / "certificate.pem"), **options},
        }
        server = Server(slug="team", access=access)
        found = server_findings(server)
        return [each.grade for each in found if each.rule == "documents"]

    near: Any = {"networks": ["127.0.0.1/32"]}
    with serving(tmp_path, "localhost") as web:
        web.document = {}
        monkeypatch.setattr(site_findings, "TRIED_DOCUMENT", web.url)
        assert grades(**near) == [Grade.GOOD]
        assert web.requests == 1
        assert grades() == [Grade.PROBLEM]
        assert grades("public", **near) == grades(**near, documents=False) == []
        # Whatever answers shows a way out.
        web.document = {"padding": "x" * 17_000}
        assert grades(**near) == [Grade.GOOD]
    assert grades(**near) == [Grade.PROBLEM]
    [_, finding] = server_findings(Server(slug="team", access="oauth"))
    # Whoever adds the line to the settings keeps the others.
    given: dict[str, Any] = {"THREADS": 4, "OAUTH": {"ca": "x"}}
    exec(finding.line, {"MCP": given})  # noqa: S102 - our own line
    assert given == {"THREADS": 4, "OAUTH": {"ca": "x", "documents": False}}


def test_tasks_that_nobody_runs(settings: Settings) -> None:
    task("waits", updated_ms=1)
    for value, line in (("here", ""), ("worker", "mcp_worker"), ("celery", "")):
        settings.MCP = {"TASKS": value}
        assert ("tasks", line) in {
            (each.rule, each.line) for each in process_findings()
        }
    worker("runs", code="x", places=2)
    assert "tasks" not in {each.rule for each in process_findings()}


def event_findings() -> list[tuple[Grade, str, str]]:
    return [
        (each.grade, each.what.partition(":")[0], each.line)
        for each in process_findings()
        if each.rule == "events"
    ]


def test_what_keeps_events_from_subscribers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert event_findings() == []
    row = subscription(due_ms=1)
    nobody = "Nobody delivers events to subscriptions"
    assert event_findings() == [(Grade.PROBLEM, nobody, "")]
    settings.MCP = {"EVENTS": {"deliver": "worker"}}
    EventSubscription.objects.update(due_ms=2**50)
    assert event_findings() == [(Grade.PROBLEM, nobody, "mcp_worker")]
    worker("posts", code="x", delivers=True)
    assert event_findings() == []
    EventSubscription.objects.update(failed_since_ms=1)
    [(grade, what, _line)] = event_findings()
    assert (grade, what) == (
        Grade.ADVICE,
        "Subscriptions whose receiver has failed for an hour",
    )
    row.delete()
    name = "order.paid"
    monkeypatch.setitem(mcp.events, name, registry.events[name])
    monkeypatch.setitem(mcp.origins, ("event", name), registry.origins["event", name])
    [(grade, what, _line)] = event_findings()
    assert "https" in what
    monkeypatch.setattr(site_findings, "is_installed", lambda _name: False)
    assert event_findings()[0][2] == 'pip install "django-mcp-app[http]"'
    settings.MCP = {"PUBLIC_URL": "https://mcp.example.com/mcp"}
    assert len(event_findings()) == 1


def test_a_system_check_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 9_000
    told = [checks.Warning(long, hint=long, id="mcp_app.W999")]
    monkeypatch.setattr(checks, "run_checks", lambda **_: told)
    assert (long, long) in {(each.what, each.why) for each in process_findings()}


def test_system_checks_and_the_doorbell(settings: Settings) -> None:
    settings.MCP = {"HOSTS": ["*"], "DOORBELL": "far"}
    settings.CHANNEL_LAYERS = {
        **getattr(settings, "CHANNEL_LAYERS", {}),
        "far": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]},
        },
    }
    found = {each.rule: each for each in process_findings()}
    assert found["mcp_app.E006"].grade is Grade.PROBLEM
    assert found["doorbell"].grade is Grade.PROBLEM
    settings.SILENCED_SYSTEM_CHECKS = ["mcp_app.E006"]
    assert "mcp_app.E006" not in {each.rule for each in process_findings()}
