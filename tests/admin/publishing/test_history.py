"""The history of a row: versions, and what else people did, each told once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.messages import get_messages
from django.db.models import QuerySet
from django.test import Client
from django.utils import timezone

from mcp_app.admin.publishing import history
from mcp_app.admin.publishing.history import MAX_TIME_APART, history_context
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionVersion, Prompt, Server, Tool
from mcp_app.publishing.overlays import make_overlays
from tests.admin.page.test_broken_rows import working
from tests.admin.pages import Staff, fill_in, form_page, page_of, saved
from tests.published import published, stopped

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


@pytest.fixture
def row(ana: User) -> Tool:
    """Published twice; clients see the second."""
    made = published(Tool(name="find", title="First"))
    made.title = "Second"
    made.save()
    made = published(made)
    for number in (1, 2):
        wrote(made, number, author=ana, author_name="ana")
    return made


def wrote(row: Tool, number: int, **columns: Any) -> None:
    """Let a version be as it never was: its own manager changes none."""
    rows = QuerySet[DefinitionVersion](DefinitionVersion)
    rows.filter(pk=version(row, number).pk).update(**columns)


def version(row: Tool, number: int) -> DefinitionVersion:
    return DefinitionVersion.objects.of(row).get(number=number)


def log(row: Any, who: User, what: str, at: datetime | None = None) -> None:
    entry = LogEntry.objects.create(
        user=who,
        content_type=ContentType.objects.get_for_model(type(row)),
        object_id=str(row.pk),
        object_repr=str(row),
        action_flag=CHANGE,
        change_message=what,
    )
    if at is not None:
        LogEntry.objects.filter(pk=entry.pk).update(action_time=at)


def told(row: Tool, *, may_restore: bool = True) -> list[str]:
    events = history_context(row, may_restore=may_restore)["events"]
    return [each["what"] for each in events]


VERSIONS = ["Published version 2", "Published version 1"]


def test_the_newest_comes_first(row: Tool, ana: User) -> None:
    log(row, ana, "Changed title.", timezone.now() + timedelta(hours=1))
    log(row, ana, "Made it.", timezone.now() - timedelta(days=1))
    # What other rows did is theirs.
    log(Prompt.objects.create(pk=row.pk, name="find"), ana, "Changed the prompt.")
    assert told(row) == ["Changed title.", *VERSIONS, "Made it."]


@pytest.mark.parametrize(
    ("after", "text", "said"),
    [
        (timedelta(0), "Published version 2.", True),
        (MAX_TIME_APART - timedelta(milliseconds=1), "Veröffentlicht: 2.", True),
        (-MAX_TIME_APART + timedelta(milliseconds=1), "2", True),
        (MAX_TIME_APART, "Published version 2.", False),
        (timedelta(0), "Changed title.", False),
    ],
)
def test_what_a_version_says_is_not_said_again(
    row: Tool, ana: User, after: timedelta, text: str, said: bool
) -> None:
    wrote(row, 1, created=timezone.now() - timedelta(days=1))
    log(row, ana, text, version(row, 2).created + after)
    assert (text in told(row)) is not said


def test_what_somebody_else_did_at_that_moment_is_told(row: Tool) -> None:
    ben = User.objects.create_user("ben")
    log(row, ben, "Stopped it at 2.", version(row, 2).created)
    assert "Stopped it at 2." in told(row)


def test_only_what_clients_do_not_see_can_be_restored(row: Tool) -> None:
    events = history_context(row, may_restore=True)["events"]
    assert [each["served"] for each in events] == [True, False]
    assert [bool(each["restore_url"]) for each in events] == [False, True]
    places = [(each["newest"], each["older"]) for each in events]
    assert places == [(True, False), (False, True)]
    assert all(each["look_url"] for each in events)
    events = history_context(row, may_restore=False)["events"]
    assert not any(each["restore_url"] for each in events)


@pytest.mark.parametrize(("most", "more"), [(2, True), (3, False)])
def test_a_page_has_an_end(
    row: Tool, most: int, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST", most)
    page = history_context(row, may_restore=True)
    assert (page["more"], page["can_compare"]) == (more, True)


def test_a_row_without_a_history() -> None:
    page = history_context(Tool.objects.create(name="new"), may_restore=True)
    assert page == {"events": [], "can_compare": False, "more": False}


# -- next steps ------------------------------------------------------------------------


CONTENT = '{"content": [{"type": "text", "text": "Nine to five."}]}'


def tool(**columns: Any) -> Tool:
    about = {"description": "Tells when the shop is open.", "read_only": True}
    return Tool(name="hours", title="Hours", config=CONTENT, **about, **columns)


def message(response: Any) -> str:
    (found,) = get_messages(response.wsgi_request)
    return str(found)


def after_save(client: Client, row: Any, **typed: str) -> str:
    response = fill_in(client, page_of(row), **typed)
    assert saved(response)
    return message(response)


def test_what_was_published_before(admin_client: Client) -> None:
    row = published(tool())
    said = after_save(admin_client, row, title="Opening hours")
    assert said.startswith("Saved. Clients still see version 1. <a href=")
    assert f'href="{page_of(row, "publish")}"' in said
    assert "Publish “Opening hours”…" in said
    said = after_save(admin_client, row, title="Hours")
    assert said == "Saved. Clients see exactly this."


def test_what_was_never_published(admin_client: Client) -> None:
    response = fill_in(admin_client, form_page("tool"), name="hours", text="Nine.")
    assert message(response).startswith("Saved. Clients do not see it yet. <a")


def test_what_code_declares(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "declared_tools", {})

    @mcp.tool
    def look() -> str:
        """Look."""
        return ""

    make_overlays(mcp)
    said = after_save(admin_client, Tool.objects.get(), title="A look")
    assert said.startswith("Saved. Clients still see the definition from the code.")


def test_who_may_not_publish_gets_no_link(staff: Staff) -> None:
    row = published(tool())
    client = staff("view_tool", "change_tool")
    said = after_save(client, row, title="Opening hours")
    assert said == "Saved. Clients still see version 1."


@pytest.mark.parametrize("row", [tool(), Server(slug="team", title="Team")])
def test_after_publishing_there_are_links(
    admin_client: Client, row: Tool | Server
) -> None:
    row.pk = None
    row.save(force_insert=True)
    url = page_of(row, "publish")
    asked = admin_client.get(url).context["proposal"]
    sent = {"looked_at": asked.content_hash, "number": asked.number}
    said = message(admin_client.post(url, sent))
    assert said.startswith("Version 1 is published. Clients see it now. <a")
    assert page_of(row, "seen" if isinstance(row, Server) else "who") in said
    assert "Connect a client" in said


def test_what_is_stopped_or_broken_is_not_said_to_be_seen(admin_client: Client) -> None:
    row = published(tool())
    working("one", row)
    said = after_save(admin_client, row, title="Opening hours")
    assert said.startswith("Saved. It is broken, so clients do not see it.")
    stopped(row)
    said = after_save(admin_client, row, title="Hours")
    assert said.startswith("Saved. It is stopped, so clients do not see it.")


def test_what_no_server_offers(admin_client: Client) -> None:
    row = published(tool())
    Server.objects.all().delete()
    said = after_save(admin_client, row, title="Opening hours")
    assert said.startswith("Saved. No server offers it, so clients do not see it.")
