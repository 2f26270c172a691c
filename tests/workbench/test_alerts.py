"""What fails and what waits is told once, by signals and by mail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.utils.timezone import now
from pytest_django import Settings

from mcp_app.models import AccessToken, Prompt, Server, Tool
from mcp_app.signals import tool_failing, work_waiting
from mcp_app.workbench import alerts
from mcp_app.workbench.alerts import tell_alerts
from tests.admin.calls.rows import crash, write
from tests.admin.tasks.test_task_admin import task
from tests.published import published

pytestmark = [pytest.mark.databases, pytest.mark.django_db]


@pytest.fixture
def told(settings: Settings) -> Iterator[list[dict[str, Any]]]:
    settings.MCP = {"ALERTS": {"mail": ["ops@example.com", "kim@example.com"]}}
    Server.objects.publish(Server.objects.all())
    heard: list[dict[str, Any]] = []

    def hear(sender: object, signal: object, **told: Any) -> None:
        heard.append(told)
        raise RuntimeError("A receiver of the site is broken.")

    tool_failing.connect(hear)
    work_waiting.connect(hear)
    yield heard
    tool_failing.disconnect(hear)
    work_waiting.disconnect(hear)


def test_what_fails_is_told_once_an_hour(
    told: list[dict[str, Any]], mailoutbox: list[EmailMessage]
) -> None:
    write(*(crash(error="said by maria") for _ in range(4)), *({} for _ in range(3)))
    # Callers are wrong here, and another tool fails too seldom.
    write(*({"name": "fine", "outcome": "arguments"} for _ in range(20)))
    write(crash(name="seldom"), *({"name": "seldom"} for _ in range(9)))
    moment = now()
    for _ in range(2):
        tell_alerts(moment)
    [mail] = mailoutbox
    assert told == [{"kind": "tool", "name": "book_table", "failed": 4, "calls": 7}]
    assert mail.to == ["ops@example.com", "kim@example.com"]
    assert mail.subject == "[MCP] book_table fails: 4 of 7 calls in 15 minutes."
    assert "maria" not in mail.message().as_string()
    # It fails in the next hour, too.
    write(*(crash(ago_ms=-3_600_000) for _ in range(5)))
    tell_alerts(moment + timedelta(hours=1))
    assert len(mailoutbox) == 2


def test_a_mail_that_fails_is_sent_a_minute_later(
    told: list[dict[str, Any]],
    mailoutbox: list[EmailMessage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Signals are not, and what else is to be told is told meanwhile."""
    write(*(crash() for _ in range(6)))
    Prompt.objects.create(name="draft")
    moment = now()

    def fail(*values: object) -> None:
        raise OSError("no mail server")

    with monkeypatch.context() as patched:
        patched.setattr(alerts, "send_mail", fail)
        tell_alerts(moment)
    assert (len(told), mailoutbox) == (2, [])
    for _ in range(2):
        tell_alerts(moment)
    assert (len(told), len(mailoutbox)) == (2, 2)


def test_what_waits_is_told_once_a_day(
    told: list[dict[str, Any]], mailoutbox: list[EmailMessage]
) -> None:
    Prompt.objects.create(name="draft")
    Tool.objects.create(name="draft")
    changed = published(Tool(name="shown"))
    changed.title = "Another"
    changed.save()
    user = User.objects.create_user("lee")
    ends = now() + timedelta(days=2)
    AccessToken.objects.make(user=user, name="laptop", expires=ends)
    AccessToken.objects.update(created=ends - timedelta(days=30))
    noon = now().replace(hour=12)
    for moment in (noon, noon + timedelta(hours=2)):
        tell_alerts(moment)
    waits = {"drafts": 2, "changes": 1, "tokens": 1}
    assert {each["what"]: each["count"] for each in told} == waits
    assert [mail.subject.rpartition(" ")[2] for mail in mailoutbox] == ["2", "1", "1"]
    Prompt.objects.all().delete()
    tell_alerts(noon + timedelta(days=1))
    assert len(mailoutbox) == 6
    assert told[3] == {"what": "drafts", "count": 1}


def test_calls_that_wait_are_told_once_for_each_newest(
    told: list[dict[str, Any]], mailoutbox: list[EmailMessage], settings: Settings
) -> None:
    """Those that a person confirms are its own, and values are nobody's here."""
    waits = {"status": "approval", "arguments": '{"note": "canary"}', "state": "canary"}
    task("mine", **{**waits, "status": "confirmation"})
    moment = now()
    tell_alerts(moment)
    assert (told, mailoutbox) == ([], [])
    first = [task("refund_order", **waits) for _ in range(2)]
    tell_alerts(moment)
    settings.MCP = {"ALERTS": {**settings.MCP["ALERTS"], "approvals": ["lee@x.org"]}}
    task("delete\u202e", **waits)
    first[0].delete()
    for _ in range(2):
        tell_alerts(moment)
    counts = [(each["what"], each["count"]) for each in told]
    assert counts == [("approvals", 2)] * 2
    two, both = mailoutbox
    assert two.subject == "[MCP] 2 calls wait for approval: refund_order"
    assert (two.to, both.to) == (["ops@example.com", "kim@example.com"], ["lee@x.org"])
    assert both.subject.endswith(" approval: refund_order, delete⟦U+202E⟧")
    texts = f"{told}{[each.message().as_string() for each in mailoutbox]}"
    assert not [each for each in ("canary", "maria", "mine") if each in texts]
