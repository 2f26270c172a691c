"""Pages of publishing, as a person with rights and one without sees them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.test import Client

from mcp_app.admin.page import stop_banner
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import mcp
from mcp_app.models import (
    Change,
    DefinitionRow,
    DefinitionVersion,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Session,
    State,
    Stop,
    Tool,
)
from mcp_app.models.stops import is_stopped
from mcp_app.publishing.row_findings import store_findings
from tests.admin.pages import (
    Queries,
    Staff,
    grant,
    page,
    page_of,
    text_after,
    text_of,
    words_in,
)
from tests.kinds.query import shop
from tests.models.recording import as_committed
from tests.published import published, stopped

pytestmark = pytest.mark.django_db


CONTENT = '{"content": [{"type": "text", "text": "Nine to five."}]}'
MARKUP = "<img src=x onerror=alert(1)>"


def tool(**columns: Any) -> Tool:
    """A tool that lint has nothing to say about."""
    defaults: dict[str, Any] = {
        "name": "opening_hours",
        "title": "Opening hours",
        "description": "Tells when the shop is open. Use it when someone asks for it.",
        "config": CONTENT,
        "read_only": True,
    }
    return Tool.objects.create(**{**defaults, **columns})


def edited(row: Tool, **columns: Any) -> Tool:
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()
    return row


def sent(row: Any, **more: Any) -> dict[str, Any]:
    """What the page *Publish* of a row sends."""
    number = 0 if row.published is None else row.published.number
    return {"looked_at": row.content_hash, "number": number, **more}


# -- publishing ---------------------------------------------------------------------


def test_nothing_is_served_until_it_is_published(
    admin_client: Client, admin_user: User
) -> None:
    row = tool()
    url = page_of(row, "publish")
    text = text_of(admin_client, url)
    assert "Not published" in text
    assert "Publish version 1" in text
    as_committed()
    done = admin_client.post(url, sent(row, note="First."), follow=True)
    assert "Version 1 is published. Clients see it now." in done.content.decode()
    row.refresh_from_db()
    assert row.state == State.PUBLISHED
    version = row.published
    assert version is not None
    assert (version.author, version.note) == (admin_user, "First.")
    assert Change.objects.filter(kind="tool", ref=str(row.pk)).count() == 1
    [entry] = LogEntry.objects.all()
    assert entry.change_message == "Published version 1. First."


def test_the_page_says_what_differs_and_what_happens(admin_client: Client) -> None:
    row = published(tool())
    Session.objects.create(
        digest="d", principal_key="k", server="default", created_ms=1, seen_ms=1
    )
    edited(row, description="Tells when the shop is open. Use it for holidays, too.")
    text = text_of(admin_client, page_of(row, "publish"))
    assert "1 difference" in text
    assert "removed:" in text
    assert "added:" in text
    assert "1 session is open" in text
    assert "Changed" in text
    assert "Publish version 2" in text


def test_only_tools_take_a_part_of_every_request(admin_client: Client) -> None:
    messages = '{"messages": []}'
    prompt = Prompt.objects.create(name="a", description="A.", config=messages)
    for row, expected in ((tool(), True), (prompt, False)):
        text = text_of(admin_client, page_of(row, "publish"))
        assert ("tokens of each request" in text) is expected


def test_no_difference_has_nothing_to_press(admin_client: Client) -> None:
    text = text_of(admin_client, page_of(published(tool()), "publish"))
    assert "Clients already see exactly this working copy." in text
    assert "Publish version" not in text


def test_what_must_be_fixed_is_told_and_holds_it_up(admin_client: Client) -> None:
    row = tool(description="", read_only=None)
    url = page_of(row, "publish")
    text = text_of(admin_client, url)
    assert text.count("Must be fixed") >= 2
    assert f"{page('tool', 'change', row.pk)}#id_description" in text
    assert "disabled" in text
    assert "description" in text_after(admin_client, url, sent(row))
    assert not DefinitionVersion.objects.filter(kind="tool").exists()


def test_old_calls_that_break_are_on_the_button(admin_client: Client) -> None:
    row = published(tool())
    edited(row, name="hours")
    text = text_of(admin_client, page_of(row, "publish"))
    assert "Publish version 2 although old calls break" in text
    assert "those to “opening_hours”." in text


TOTALS: dict[str, Any] = {
    "model": "drill.Order",
    "answer": "groups",
    "group_by": ["customer"],
    "measures": [{"aggregate": "sum", "path": "total", "name": "turnover"}],
    "filters": [{"path": "created", "lookup": "period", "parameter": "created"}],
    "limit": 50,
}


def test_a_query_changes_in_words(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the parameters and the hints that clients get, which no column has."""
    monkeypatch.setattr(mcp, "open_models", shop.shop())
    row = published(tool(kind="query", config=json.dumps(TOTALS), read_only=None))
    filters = [
        {"path": "due", "lookup": "exact", "parameter": "day", "required": True},
        {"path": "state", "lookup": "in", "value": ["open", "back"]},
    ]
    edited(row, config=json.dumps({**TOTALS, "filters": filters, "limit": 10}))
    text = words_in(admin_client.get(page_of(row, "publish")))
    for said in (
        "Part Now (version 1) Then (version 2)",
        "At most removed: 50 groups added: 10 groups",
        "removed: created is in the period given as created, the client says",
        "added: due is on day, the client must say it",
        "added: state is one of Waits to be sent, Came back, fixed",
        "removed: created: period, not required added: day: date, required",
        "One group for each: customer",
        "Calls that work now will fail: those with “created”, those without “day”.",
        "Only reads · the same call gives the same · stays inside this site",
    ):
        assert said in text
    listed = words_in(admin_client.get(page("tool")))
    assert "The 10 customers with the largest turnover (sum of total)." in listed
    version = words_in(admin_client.get(page_of(row, "version", 1)))
    assert "Only orders where created is in the period given as created, the" in version
    assert "removed:" not in version


def test_a_call_of_another_site_reaches_outside(admin_client: Client) -> None:
    """Whatever its column says: clients are told so, too."""
    config = json.dumps({"site": "helpdesk", "path": "/tickets"})
    row = tool(kind="http", config=config, open_world=False)
    text = words_in(admin_client.get(page_of(row, "publish")))
    assert "What clients will see Part Then (version 1)" in text
    assert "Calls GET https://help.example.com/api/tickets" in text
    assert text.count("reaches outside this site: Help desk") == 2


def test_who_was_quicker_is_told(admin_client: Client) -> None:
    row = published(tool())
    edited(row, title="Mine")
    before = sent(row, note="Why.")
    edited(row, title="Theirs")
    url = page_of(row, "publish")
    late = admin_client.post(url, before, follow=True)
    assert "The working copy changed while this page was open" in late.content.decode()
    assert 'value="Why."' in late.content.decode()
    assert row.published is not None
    now = sent(row)
    published(row)
    assert "Version 2 was published by a command" in text_after(admin_client, url, now)
    Tool.objects.unpublish([row])
    late = admin_client.post(url, now, follow=True)
    assert "was taken off the lists while this page was open" in late.content.decode()
    assert DefinitionVersion.objects.of(row).count() == 2


def test_a_name_that_is_published_already(admin_client: Client) -> None:
    other = published(tool())
    edited(other, name="renamed")
    row = tool()
    url = page_of(row, "publish")
    assert "is published as opening_hours already" in text_of(admin_client, url)
    admin_client.post(url, sent(row))
    row.refresh_from_db()
    assert row.published is None


def test_versions_can_be_compared(admin_client: Client) -> None:
    row = published(tool(title="One"))
    published(edited(row, title="Two"))
    edited(row, title="Three")
    url = page_of(row, "publish")
    text = text_of(admin_client, f"{url}?before=1&after=2")
    assert "One" in text
    assert "Two" in text
    assert "Publish version 3" not in text
    assert admin_client.get(f"{url}?before=1&after=99").status_code == 404


def test_a_server_is_published_too(admin_client: Client) -> None:
    server = Server.objects.create(slug="shop", instructions="Be kind.")
    url = page("server", "publish", server.pk)
    assert "Be kind." in text_of(admin_client, url)
    admin_client.post(url, sent(server))
    server.refresh_from_db()
    assert server.state == State.PUBLISHED


def test_unpublishing_asks_first(admin_client: Client) -> None:
    row = published(tool())
    url = page_of(row, "unpublish")
    assert "Take it off the list" in text_of(admin_client, url)
    row.refresh_from_db()
    assert row.published is not None
    assert "was published by" in text_after(admin_client, url, {"number": 7})
    admin_client.post(url, {"number": 1})
    row.refresh_from_db()
    assert row.state == State.UNPUBLISHED
    assert DefinitionVersion.objects.of(row).count() == 1


def test_it_says_which_servers_offer_it_and_to_whom(admin_client: Client) -> None:
    row = tool()
    published(Server(slug="team", access="token", selection="all"))
    published(Server(slug="other", access="token", selection="tags", tags="other"))
    Server.objects.filter(slug="default").update(access="public")
    published(Server.objects.get(slug="default"))
    url = page_of(row, "publish")
    public = "default (public: anyone on the internet) and team."
    assert f"at the servers {public}" in text_of(admin_client, url)
    edited(row, permission="mcp_app.view_tool")
    text = text_of(admin_client, url)
    assert (
        "1 person, at the servers default and team. They need: Can view tool." in text
    )


# -- history ------------------------------------------------------------------------


def test_the_history_says_who_when_and_why(
    admin_client: Client, django_assert_max_num_queries: Queries
) -> None:
    row = published(tool(title="One"))
    for title in ("Two", "Three"):
        edited(row, title=title)
        admin_client.post(page_of(row, "publish"), sent(row, note=f"Because {title}."))
        row.refresh_from_db()
    admin_client.post(page_of(row, "stop"))
    with django_assert_max_num_queries(8 + 4):
        response = admin_client.get(page_of(row, "history"))
    whats = [event["what"] for event in response.context["events"]]
    versions = [f"Published version {number}" for number in (3, 2, 1)]
    assert whats == ["Stopped.", *versions]
    text = response.content.decode()
    for said in ("Because Three.", "admin", "a command"):
        assert said in text
    assert DefinitionVersion.objects.of(row)[0].fingerprint in text


def test_a_version_can_be_looked_at(admin_client: Client) -> None:
    row = published(tool(title=MARKUP))
    text = text_of(admin_client, page_of(row, "version", 1))
    assert "&lt;img src=x" in text
    assert MARKUP not in text
    assert admin_client.get(page_of(row, "version", 2)).status_code == 404


@pytest.mark.parametrize("working_copy", [False, True])
def test_rolling_back_publishes_an_old_version_again(
    admin_client: Client, working_copy: bool
) -> None:
    row = published(tool(title="One"))
    published(edited(row, title="Two"))
    edited(row, title="Three")
    url = page_of(row, "rollback", 1)
    assert "Publish version 1 again as version 3" in text_of(admin_client, url)
    more = {"working_copy": "on"} if working_copy else {}
    admin_client.post(url, sent(row, **more))
    row.refresh_from_db()
    version = row.published
    assert version is not None
    assert (version.number, version.restored) == (3, 1)
    assert version.read()["title"] == "One"
    assert row.title == ("One" if working_copy else "Three")
    text = text_of(admin_client, page_of(row, "history"))
    assert "Published version 1 again as version 3" in text


def test_a_version_that_cannot_be_served_any_more(admin_client: Client) -> None:
    row = tool(kind="function", config='{"function": "gone.away"}')
    Tool.objects.publish([row])
    published(edited(row, kind="text", config=CONTENT))
    url = page_of(row, "rollback", 1)
    assert "gone.away" in text_of(admin_client, url)
    admin_client.post(url, sent(row))
    row.refresh_from_db()
    assert row.published is not None
    assert row.published.number == 2


# -- stopping -----------------------------------------------------------------------


def test_stopping_needs_no_question_and_starting_one(admin_client: Client) -> None:
    row = published(tool())

    def state() -> State:
        rows = Tool.rows().with_states(is_stopped(Tool))
        return State(rows.get(pk=row.pk).reckoned_state)  # type: ignore[attr-defined]

    stopped = admin_client.post(page_of(row, "stop"), follow=True)
    assert "clients do not see it any more" in stopped.content.decode()
    assert state() == State.STOPPED
    # Who stops it a second time makes no second stop.
    admin_client.post(page_of(row, "stop"))
    [stop] = Stop.objects.of_rows([row])
    url = stop_banner.start_url(stop_banner.target_of(row), back=stop_banner.ROW)
    assert "Clients see version 1 again." in text_of(admin_client, url)
    assert state() == State.STOPPED
    admin_client.post(url, {"stop": [stop.pk]})
    assert state() == State.PUBLISHED


def test_the_form_stops_without_saving(admin_client: Client) -> None:
    """Its button sends the whole form to the address that stops."""
    row = published(tool())
    admin_client.post(page_of(row, "stop"), {"title": "Not saved"})
    row.refresh_from_db()
    assert (row.title, row.lock_version) == ("Opening hours", 0)
    assert Stop.objects.of_rows([row])


# -- many at once -------------------------------------------------------------------


def chosen(*rows: Tool, **more: Any) -> dict[str, Any]:
    keys = [row.pk for row in rows]
    return {"action": "publish_chosen", "_selected_action": keys, **more}


def confirmed(*rows: Tool) -> dict[str, Any]:
    more: dict[str, Any] = {"confirmed": "yes", "note": "All."}
    for row in rows:
        more |= {f"{name}-{row.pk}": value for name, value in sent(row).items()}
    return chosen(*rows, **more)


def test_many_are_published_together_after_a_look(admin_client: Client) -> None:
    rows = [published(tool(name="old")), tool(name="two")]
    edited(rows[0], name="one")
    text = admin_client.post(page("tool"), chosen(*rows)).content.decode()
    assert text.count('name="looked_at-') == 2
    assert "will fail:</strong> those to “old”." in text
    assert DefinitionVersion.objects.filter(kind="tool").count() == 1
    done = admin_client.post(page("tool"), confirmed(*rows), follow=True)
    assert "2 were published." in done.content.decode()
    for row in rows:
        row.refresh_from_db()
        assert row.state == State.PUBLISHED


def test_many_are_published_all_or_none(admin_client: Client) -> None:
    rows = [tool(name="one"), tool(name="two", description="")]
    text = admin_client.post(page("tool"), chosen(*rows)).content.decode()
    assert text.count("checked") == 1
    refused = admin_client.post(page("tool"), confirmed(*rows), follow=True)
    assert "Nothing was published. Opening hours:" in refused.content.decode()
    assert not DefinitionVersion.objects.filter(kind="tool").exists()


def test_many_are_unpublished(admin_client: Client) -> None:
    rows = [published(tool(name="one")), tool(name="two")]
    sent = {**chosen(*rows), "action": "unpublish_chosen"}
    assert "1 was taken off." in text_after(admin_client, page("tool"), sent)
    rows[0].refresh_from_db()
    assert rows[0].state == State.UNPUBLISHED


def test_more_than_a_page_can_compare(admin_client: Client) -> None:
    Tool.objects.bulk_create([Tool(name=f"t{number}") for number in range(101)])
    sent = {**chosen(*Tool.objects.all()[:1]), "select_across": "1"}
    done = admin_client.post(page("tool"), sent, follow=True)
    assert "At most 100 can be published at once." in done.content.decode()


# -- rights -------------------------------------------------------------------------

PAGES = ("publish", "unpublish", "stop")


@pytest.mark.parametrize("name", PAGES)
def test_without_the_right_nothing_happens(staff: Staff, name: str) -> None:
    row = published(tool())
    edited(row, title="New")
    client = staff("view_tool", "change_tool")
    number = {"number": 1, "looked_at": row.content_hash}
    assert client.post(page("tool", name, row.pk), number).status_code == 403
    row.refresh_from_db()
    assert row.state == State.CHANGED
    assert not Stop.objects.exists()
    assert client.post(page_of(row, "rollback", 1), number).status_code == 403


def test_a_right_that_is_missing_is_explained(staff: Staff) -> None:
    row = tool()
    text = text_of(staff("view_tool"), page_of(row, "publish"))
    assert "Publishing needs the right “Can publish and roll back”." in text
    assert "Stopping and starting needs the right “Can stop and start”." in text
    assert '<button class="mcp-btn' not in text


def test_whom_to_ask_for_a_missing_right(staff: Staff) -> None:
    User.objects.create_user("lee")
    grant("publish", to="lee")
    text = text_of(staff("view_tool", "view_user"), page_of(tool(), "publish"))
    assert "“Can publish and roll back”. You can ask: lee." in text


@pytest.mark.parametrize("name", [*PAGES, "history"])
def test_what_one_may_not_see(staff: Staff, name: str) -> None:
    row = tool()
    client = staff("publish", "stop", "view_prompt")
    assert client.get(page("tool", name, row.pk)).status_code == 403
    assert client.get(page("tool", name, 999)).status_code == 403


def test_a_link_to_what_is_gone(admin_client: Client) -> None:
    for key in (999, "nonsense"):
        assert admin_client.get(page("tool", "publish", key)).status_code == 404


def test_the_product_rights_are_enough(staff: Staff) -> None:
    row = tool()
    client = staff("view_tool", "publish", "stop")
    client.post(page_of(row, "publish"), sent(row))
    client.post(page_of(row, "stop"))
    row.refresh_from_db()
    assert row.published is not None
    assert Stop.objects.of_rows([row])


@pytest.mark.parametrize(
    ("model", "field", "right"),
    [
        ("tool", "permission", "grant"),
        ("tool", "approval", "grant"),
        ("tool", "function", "behind"),
        ("tool", "config", "behind"),
        ("tool", "config-json", "behind"),
        ("server", "access-public", "grant"),
    ],
)
def test_a_field_without_its_right_is_refused_and_not_dropped(
    staff: Staff, model: str, field: str, right: str
) -> None:
    row: Any = Server.objects.get() if model == "server" else tool(kind="function")
    client = staff(f"view_{model}", f"change_{model}")
    url = page(model, "change", row.pk)
    text = text_of(client, url)
    assert f'name="{field}"' not in text
    assert "Some fields cannot be changed here." in text
    before = row.content_hash, row.lock_version
    response = client.post(url, {"title": "New", field: "public", "_save": "Save"})
    assert response.status_code == 403
    row.refresh_from_db()
    assert (row.content_hash, row.lock_version) == before
    grant(right)
    shown = f'name="{field}"' in text_of(client, url)
    # A function is chosen by its name, and never by JSON.
    assert shown is not field.startswith("config")


def overlay(**columns: Any) -> Tool:
    return Tool.objects.create(name="declared", source="code", **columns)


def test_what_code_declares_is_not_unpublished(admin_client: Client) -> None:
    """It would take an added permission away, and leave the tool on the lists."""
    row = published(overlay(permission="auth.view_user"))
    assert "Unpublish" not in text_of(admin_client, page_of(row, "publish"))
    url = page_of(row, "unpublish")
    done = admin_client.post(url, {"number": 1}, follow=True)
    assert "The code declares this definition, so" in done.content.decode()
    sent = {**chosen(row), "action": "unpublish_chosen"}
    done = admin_client.post(page("tool"), sent, follow=True)
    assert "The code declares this definition, so" in done.content.decode()
    assert "0 were taken off." in done.content.decode()
    row.refresh_from_db()
    assert row.published is not None


FIND = {"kind": "function", "config": '{"function": "shop.find"}'}


@pytest.mark.parametrize(
    ("old", "new", "right"),
    [
        ({}, {"permission": "auth.view_user"}, "grant"),
        ({}, {"approval": "other"}, "grant"),
        ({"approval": "other"}, {"approval": "self"}, "grant"),
        (FIND, {"kind": "text", "config": CONTENT}, "behind"),
        (FIND, {**FIND, "config": '{"function": "shop.sell"}'}, "behind"),
    ],
)
def test_rolling_back_needs_the_rights_for_what_it_changes(
    staff: Staff,
    monkeypatch: pytest.MonkeyPatch,
    old: dict[str, Any],
    new: dict[str, Any],
    right: str,
) -> None:
    for key in ("shop.find", "shop.sell"):
        function = RegisteredFunction(lambda: "", key=key, returns=str)
        monkeypatch.setitem(mcp.functions, key, function)
    row = published(tool(**old))
    published(edited(row, **new))
    client = staff("view_tool", "change_tool", "publish")
    url = page_of(row, "rollback", 1)
    assert client.post(url, sent(row, working_copy="on")).status_code == 403
    row.refresh_from_db()
    assert row.published is not None
    assert (row.published.number, row.permission) == (2, new.get("permission", ""))
    grant(right)
    assert client.post(url, sent(row, working_copy="on")).status_code == 302
    row.refresh_from_db()
    assert row.published.number == 3


def test_putting_back_what_demands_less_needs_the_right_to_grant(staff: Staff) -> None:
    """What clients see demands as much before and after: the working copy does not."""
    row = published(tool(title="One"))
    published(edited(row, title="Two"))
    edited(row, permission="auth.view_user")
    client = staff("view_tool", "change_tool", "publish")
    url = page_of(row, "rollback", 1)
    assert client.post(url, sent(row, working_copy="on")).status_code == 403
    assert client.post(url, sent(row)).status_code == 302
    row.refresh_from_db()
    assert row.permission == "auth.view_user"


def test_taking_it_off_the_lists_first_needs_the_right_to_grant(staff: Staff) -> None:
    row = published(tool())
    published(edited(row, approval="other"))
    client = staff("view_tool", "publish")
    client.post(page_of(row, "unpublish"), {"number": 2})
    url = page_of(row, "rollback", 1)
    assert client.post(url, {"number": 0}).status_code == 403
    grant("grant")
    assert client.post(url, {"number": 0}).status_code == 302


def test_putting_the_working_copy_back_needs_the_right_to_change_it(
    staff: Staff,
) -> None:
    row = published(tool(title="One"))
    published(edited(row, title="Two"))
    client = staff("view_tool", "publish")
    url = page_of(row, "rollback", 1)
    assert client.post(url, sent(row, working_copy="on")).status_code == 403
    assert client.post(url, sent(row)).status_code == 302


def test_a_copy_is_refused_where_a_right_would_be_lost(staff: Staff) -> None:
    row = tool(permission="auth.view_user")
    client = staff("view_tool", "change_tool", "add_tool", "behind")
    sent = {"name": "copy", "_saveasnew": "Save as new"}
    url = page_of(row)
    assert client.post(url, sent).status_code == 403
    assert Tool.objects.count() == 1
    free = tool(name="free")
    url = page("tool", "change", free.pk)
    # Whatever else is missing, it is not a right.
    assert client.post(url, sent).status_code != 403


@pytest.mark.parametrize("note", ["a" * 1_001, "a\x00b", "a\u202eb"])
def test_a_note_that_cannot_be_kept(admin_client: Client, note: str) -> None:
    row = tool()
    url = page_of(row, "publish")
    assert 'class="error"' in text_after(admin_client, url, sent(row, note=note))
    row.refresh_from_db()
    assert row.published is None


@pytest.mark.parametrize("number", ["", "x", "²", "9" * 5_000, "\x00", "-1"])
def test_odd_numbers_of_versions(admin_client: Client, number: str) -> None:
    row = published(tool())
    edited(row, title="New")
    for each, versions in ((row, 1), (tool(name="other"), 0)):
        url = page_of(each, "publish")
        admin_client.post(url, sent(each, number=number))
        assert DefinitionVersion.objects.of(each).count() == versions
    query = {"before": number, "after": number}
    assert admin_client.get(url, query).status_code == 200
    assert admin_client.get(page("tool"), {"server": number}).status_code == 200


def test_what_is_stopped_is_published_and_not_served(admin_client: Client) -> None:
    row = stopped(tool())
    url = page_of(row, "publish")
    done = admin_client.post(url, sent(row), follow=True)
    assert "It is stopped, so clients do not see it" in done.content.decode()


def test_what_is_not_published_is_started_and_not_served(admin_client: Client) -> None:
    row = stopped(tool())
    url = stop_banner.start_url(stop_banner.target_of(row), back=stop_banner.ROW)
    text = text_of(admin_client, url)
    assert "It is not published. Clients see it only after you publish it." in text


def test_a_stale_hash_does_not_hold_up_publishing(admin_client: Client) -> None:
    """As a fixture of an older release leaves it."""
    row = tool()
    QuerySet(Tool).filter(pk=row.pk).update(content_hash="")
    url = page_of(row, "publish")
    looked_at = re.search(r'name="looked_at" value="(\w+)"', text_of(admin_client, url))
    assert looked_at
    admin_client.post(url, {"looked_at": looked_at[1], "number": 0})
    row.refresh_from_db()
    assert row.published is not None


def test_many_on_one_page_cost_few_queries(
    admin_client: Client, django_assert_max_num_queries: Queries
) -> None:
    rows = [tool(name=f"t{number}") for number in range(30)]
    with django_assert_max_num_queries(15):
        admin_client.post(page("tool"), chosen(*rows))


# -- looks --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["change", "publish", "history"])
def test_pages_cost_few_queries_and_take_nothing_for_markup(
    admin_client: Client, name: str, django_assert_max_num_queries: Queries
) -> None:
    Server.objects.update(title=MARKUP)
    published(Server.objects.get())
    row = published(tool(title=MARKUP, description=MARKUP, tags="a"))
    edited(row, title=f"{MARKUP} again")
    Tool.objects.filter(pk=row.pk).update(broken=MARKUP)
    with django_assert_max_num_queries(15):
        text = text_of(admin_client, page("tool", name, row.pk))
    assert MARKUP not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "Broken" in text


def test_saving_leads_to_publishing(admin_client: Client) -> None:
    assert 'name="_publish"' in text_of(admin_client, Prompt.objects.create(name="a"))


@pytest.mark.parametrize("kind", ["text", "function"])
@pytest.mark.parametrize(
    "row",
    [
        Tool(name="a", title="A"),
        Prompt(name="a", title="A"),
        Resource(name="a", title="A", uri="shop://a"),
        ResourceTemplate(name="a", title="A", uri_template="shop://{a}"),
    ],
    ids=lambda row: row.kind_of_row,
)
def test_each_problem_leads_to_a_field_that_is_open(
    admin_client: Client, row: DefinitionRow, kind: str
) -> None:
    row.pk, row.kind = None, kind
    row.save(force_insert=True)
    store_findings(row, mcp)
    goals = re.findall(
        r'href="[^"]*#(id_[a-z_]+)">Go to the field',
        text_of(admin_client, page_of(row, "publish")),
    )
    assert goals
    # The fieldset that is closed comes last.
    open_part = text_of(admin_client, row).partition("More: JSON, icons, history")[0]
    for goal in goals:
        assert f'id="{goal}"' in open_part, goal
