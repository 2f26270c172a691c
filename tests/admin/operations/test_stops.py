"""The page that stops: what it says, who may press, and what comes back."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from mcp_app.catalog.registry import mcp
from mcp_app.models import Prompt, Resource, Server, Stop, Tool
from mcp_app.models.stops import By, Running, Scope
from mcp_app.models.transactions import NowMilliseconds
from tests.admin.calls.rows import HOUR, write
from tests.admin.operations.test_live import session
from tests.admin.pages import Queries, Staff, grant, page, page_of, text_of
from tests.published import published

pytestmark = pytest.mark.django_db


STOPS = "/admin/mcp_app/server/stop/"
AGAIN = "/admin/mcp_app/server/stop/start/"
LEE = By("lee", "8")
MARKUP = "<img src=x onerror=alert(1)>\u202e"


@pytest.fixture(autouse=True)
def _rows() -> None:
    Server.objects.all().delete()
    published(Server(slug="default", title="Support desk"))
    published(Server(slug="partners", title="Partners"))
    for number in range(2):
        published(Tool(name=f"add_{number}", title=f"Add {number}"))
    published(Tool(name="look", read_only=True))


def words(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(unescape(re.sub("<[^>]+>", " ", answer.content.decode())).split())


def shown(client: Client, url: str = STOPS) -> str:
    return words(client.get(url))


def press(client: Client, target: str, **sent: str) -> str:
    """Press a button of the page; return what the page says then."""
    answer = client.post(STOPS, {"stop": target, **sent}, follow=True)
    assert answer.redirect_chain == [(STOPS, 302)]
    return words(answer)


def test_what_it_says_where_nothing_is_stopped(admin_client: Client) -> None:
    session(seen_ms=NowMilliseconds())
    write({"session": ""}, {"session": "", "ago_ms": HOUR})
    text = shown(admin_client)
    for said in (
        "No client can do anything. The site itself goes on. ■ Stop everything",
        "Why (staff see it, clients do not)",
        "One thing A tool, resource, template, prompt or event type.",
        "All tools that change things 2 tools. Tools that only read go on.",
        "Stop what changes things",
        "Server Support desk /mcp, 2 clients in the last 15 minutes.",
        "Server Partners /mcp/partners, 0 clients",
        "Stop Partners",
    ):
        assert said in text
    assert "Start again" not in text


@pytest.mark.parametrize(
    ("target", "scope", "said"),
    [
        ("everything", Scope.EVERYTHING, "Everything is stopped since"),
        ("changes", Scope.CHANGES, "All tools that change things are stopped since"),
        ("server", Scope.SERVER, "The server Partners is stopped since"),
        ("tool", Scope.DEFINITION, "add_0 is stopped since"),
    ],
)
def test_one_press_stops_and_two_start(
    admin_client: Client, target: str, scope: str, said: str
) -> None:
    if target == "server":
        target = f"server:{Server.objects.get(slug='partners').pk}"
    elif target == "tool":
        target = f"tool:{Tool.objects.get(name='add_0').pk}"
    text = press(admin_client, target, reason="Wrong prices go out", running="finish")
    said_of_it = "by admin. Why: “Wrong prices go out”. Clients do not see it any more."
    finish = "Calls that were running when it was stopped may finish."
    for each in (said, said_of_it, finish):
        assert each in text
    stop = Stop.objects.get()
    found = (stop.scope, stop.by_name, stop.running, stop.reason)
    assert found == (scope, "admin", Running.FINISH, "Wrong prices go out")
    # It asks once.
    again = admin_client.get(AGAIN, {"what": target})
    assert "Wrong prices go out" in words(again)
    assert Stop.objects.on().exists()
    done = admin_client.post(AGAIN, {"stop": [stop.pk]}, follow=True)
    assert f"Started again: {stop.what}." in words(done)
    assert not Stop.objects.on().exists()
    logged = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert [*logged] == [
        f"Stopped {stop.what}; running calls: let finish. Wrong prices go out",
        f"Started again: {stop.what}.",
    ]


def test_how_many_calls_were_cancelled_is_said(admin_client: Client) -> None:
    stop = Stop.objects.make(Scope.EVERYTHING, by=LEE)
    assert "cancelled." not in shown(admin_client)
    Stop.objects.count_cancelled(stop.pk, 3)
    assert "3 running calls were cancelled." in shown(admin_client)


def test_what_is_stopped_with_everything_is_said_to_be(admin_client: Client) -> None:
    Stop.objects.make(Scope.EVERYTHING, by=LEE)
    text = shown(admin_client)
    assert text.count("Stopped with everything.") == 3
    # It can be stopped by itself, too.
    assert "Stop Partners" in text


def test_what_comes_back_and_what_stays(admin_client: Client) -> None:
    partners = Server.objects.get(slug="partners")
    tool = Tool.objects.get(name="add_0")
    Stop.objects.make(Scope.EVERYTHING, by=LEE, reason="Fire")
    Stop.objects.make(Scope.SERVER, partners, by=LEE)
    Stop.objects.make(Scope.DEFINITION, tool, by=LEE)
    text = shown(admin_client, f"{AGAIN}?what=everything")
    assert "by lee. Why: “Fire”." in text
    assert "These stay stopped: Partners, add_0." in text
    key = Stop.objects.get(scope=Scope.EVERYTHING).pk
    done = admin_client.post(AGAIN, {"stop": [key]}, follow=True)
    said = "Started again: Everything. These stay stopped: Partners, add_0."
    assert said in words(done)
    assert Stop.objects.on().count() == 2


def test_two_people_start_at_once(admin_client: Client) -> None:
    stop = Stop.objects.make(Scope.CHANGES, by=LEE)
    Stop.objects.end([stop.pk], by=LEE)
    done = admin_client.post(AGAIN, {"stop": [stop.pk, "x", ""]}, follow=True)
    assert "Somebody has started this before you." in words(done)
    late = admin_client.get(AGAIN, {"what": "changes"}, follow=True)
    assert "This is not stopped any more." in words(late)


def test_find_a_tool_and_stop_it(admin_client: Client) -> None:
    sent = {"q": "add", "reason": "So far", "running": "finish", "stop": ""}
    answer = admin_client.post(STOPS, sent)
    text, html = words(answer), answer.content.decode()
    assert "Stop Add 0" in text
    assert "Stop look" not in text
    # What was typed is there.
    assert 'value="So far"' in html
    assert 'value="finish" checked' in html
    press(admin_client, f"tool:{Tool.objects.get(name='add_0').pk}")
    assert "Stop Add 0" not in shown(admin_client, f"{STOPS}?q=add")
    nothing = "For “zzz” nothing was found that runs now and could be stopped."
    assert nothing in shown(admin_client, f"{STOPS}?q=zzz")


@pytest.mark.parametrize(
    "sent",
    [
        {"stop": "tool:4711"},
        {"stop": "user:1"},
        {"stop": "tool:x"},
        {"stop": "all"},
        {"stop": "everything", "running": "wait"},
        {"stop": "everything", "running": "\0"},
        {"stop": "tool:\0"},
    ],
)
def test_what_cannot_be_stopped_so(admin_client: Client, sent: dict[str, str]) -> None:
    answer = admin_client.post(STOPS, sent)
    assert answer.status_code == 200
    assert "errorlist" not in answer.content.decode()
    assert 'class="error"' in answer.content.decode()
    assert not Stop.objects.exists()


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("x" * 501, "x" * 499 + "…"),
        ("a\u202eb\u200bc", "abc"),
        ("two\r\nlines\tand\0more", "two lines andmore"),
    ],
)
def test_a_reason_that_cannot_be_kept_as_it_is(
    admin_client: Client, reason: str, kept: str
) -> None:
    text = press(admin_client, "everything", reason=reason)
    assert "Stopped: Everything. Clients do not see it any more." in text
    assert f"The reason was stored in a changed form: “{kept}”." in text
    assert Stop.objects.get().reason == kept


@pytest.mark.parametrize("sought", ["\0", "a\0b", "x" * 100_000, "%", "\u202e"])
def test_what_nothing_is_called(admin_client: Client, sought: str) -> None:
    for method in (admin_client.get, admin_client.post):
        assert "Stop add_0" not in words(method(STOPS, {"q": sought}))


def test_it_is_found_by_what_clients_call_it(admin_client: Client) -> None:
    tool = published(Tool(name="refund"))
    Tool.objects.filter(pk=tool.pk).update(name="pay", title="Pay")
    hours = published(Resource(name="hours", uri="shop://open", config='{"text": "9"}'))
    assert "Stop Pay" in shown(admin_client, f"{STOPS}?q=refund")
    assert "Stop hours" in shown(admin_client, f"{STOPS}?q=shop://op")
    press(admin_client, f"tool:{tool.pk}")
    assert Stop.objects.get().what == "refund"
    for row in (tool, hours):
        row.delete()
    Stop.objects.make(Scope.DEFINITION, published(Prompt(name="greet")), by=LEE)
    # What was made again is stopped as it was.
    published(Tool(name="refund", title="Again"))
    assert "Stop Again" not in shown(admin_client, f"{STOPS}?q=refund")


def test_code_under_the_name_of_a_draft_is_found(admin_client: Client) -> None:
    @mcp.tool("from_code")
    def from_code() -> str:
        return ""

    try:
        row = Tool.objects.create(name="from_code")
        Tool.objects.create(name="from_code_2")
        text = shown(admin_client, f"{STOPS}?q=from")
        assert "Stop from_code" in text
        assert "from_code_2" not in text
        press(admin_client, f"tool:{row.pk}")
    finally:
        del mcp.tools["from_code"]
    assert Stop.objects.get().served == "from_code"


def test_what_was_made_again_is_shown_and_started(admin_client: Client) -> None:
    server = Server.objects.get(slug="partners")
    tool = Tool.objects.get(name="add_0")
    for scope, row in ((Scope.SERVER, server), (Scope.DEFINITION, tool)):
        Stop.objects.make(scope, row, by=LEE)
    server.delete()
    tool.delete()
    server = published(Server(slug="partners", title="Partners"))
    tool = published(Tool(name="add_0"))
    text = shown(admin_client, f"{AGAIN}?what=server:{server.pk}")
    assert "The server Partners is stopped since" in text
    text = shown(admin_client, page_of(server))
    assert "The server Partners is stopped since" in text
    assert "add_0 is stopped since" in shown(admin_client, page_of(tool))
    text = shown(admin_client, f"{AGAIN}?what=tool:{tool.pk}")
    assert "add_0: Clients see version 1 again." in text


def test_very_many_that_are_stopped_are_counted(admin_client: Client) -> None:
    rows = Tool.objects.bulk_create([Tool(name=f"many_{n:02}") for n in range(52)])
    Stop.objects.make_many(Tool.objects.filter(name__in=[r.name for r in rows]), by=LEE)
    text = shown(admin_client)
    assert "many_49" in text
    assert "many_50" not in text
    more = "2 more definitions or servers are stopped: filter the lists by the state"
    assert more in text


def test_what_was_deleted_does_not_come_back(admin_client: Client) -> None:
    row = Tool.objects.get(name="add_0")
    stop = Stop.objects.make(Scope.DEFINITION, row, by=LEE)
    url = f"{AGAIN}?what=tool:{row.pk}&back=row"
    row.delete()
    assert "add_0 was deleted. No client sees it." in shown(admin_client, url)
    done = admin_client.post(url, {"stop": [stop.pk], "back": "row"})
    assert done["Location"] == STOPS


def test_without_the_right(staff: Staff) -> None:
    client = staff("view_server", "change_server", "view_tool")
    for answer in (
        client.get(STOPS),
        client.post(STOPS, {"stop": "everything"}),
        client.get(AGAIN, {"what": "everything"}),
        client.post(AGAIN, {"stop": ["1"]}),
    ):
        assert answer.status_code == 403
    assert not Stop.objects.exists()
    assert STOPS not in text_of(client, page("tool"))
    home = reverse("admin:app_list", args=["mcp_app"])
    said = "To stop something, ask someone with the right “Can stop and start”"
    assert f"{said}. " in shown(client, home)
    night = Group.objects.create(name="Night shift")
    night.permissions.add(Permission.objects.get(codename="stop"))
    assert f"{said}: Night shift." in shown(client, home)
    grant("view_user")
    User.objects.create_user("lee").groups.add(night)
    assert f"{said}: lee." in shown(client, home)


def test_the_right_alone_is_enough(staff: Staff) -> None:
    client = staff("stop")
    assert "Everything is stopped" in press(client, "everything")


@pytest.mark.parametrize(
    "url",
    [
        page("tool"),
        page("server"),
        page("session"),
        page("prompt", "add"),
        page("server", "import"),
        page("session", "live"),
        "/admin/mcp_app/",
    ],
)
def test_a_strip_on_every_page(admin_client: Client, url: str) -> None:
    strip = "Everything is stopped since"
    assert strip not in shown(admin_client, url)
    # Whatever came into the row is text.
    stop = Stop.objects.create(scope=Scope.EVERYTHING, by_name=MARKUP, reason=MARKUP)
    answer = admin_client.get(url)
    html = answer.content.decode()
    assert strip in words(answer)
    assert MARKUP not in html
    assert "⟦U+202E⟧" in html
    assert STOPS in html
    Stop.objects.end([stop.pk], by=LEE)
    Stop.objects.make(Scope.DEFINITION, Tool.objects.get(name="add_0"), by=LEE)
    assert strip not in shown(admin_client, url)


def test_the_pages_of_a_row_and_its_list(admin_client: Client) -> None:
    row = Tool.objects.get(name="add_0")
    pages = [page_of(row, name) for name in ("change", "publish", "history")]
    for url in pages:
        assert "Everything is stopped" not in shown(admin_client, url)
    Stop.objects.make(Scope.DEFINITION, row, by=LEE, reason="Fire")
    assert "Also stopped, each by itself: add_0." in shown(admin_client, page("tool"))
    assert "Also stopped, each by itself" not in shown(admin_client, page("prompt"))
    text = shown(admin_client, page_of(row))
    assert "add_0 is stopped since" in text
    assert "Why: “Fire”." in text
    Stop.objects.make(Scope.EVERYTHING, by=LEE)
    for url in pages:
        assert "Everything is stopped" in shown(admin_client, url)


def test_the_list_says_of_a_row_that_it_is_stopped(admin_client: Client) -> None:
    says = "Somebody has stopped it. Clients do not see it."
    mark = f'<span class="mcp-state stopped" title="{says}">'
    for scope, row in (
        (Scope.SERVER, Server.objects.get(slug="partners")),
        (Scope.DEFINITION, Tool.objects.get(name="add_0")),
    ):
        url = page(row.kind_of_row)
        assert mark not in text_of(admin_client, url)
        Stop.objects.make(scope, row, by=LEE)
        assert text_of(admin_client, url).count(mark) == 1


def test_few_queries(staff: Staff, django_assert_max_num_queries: Queries) -> None:
    client = staff("stop", "view_server")
    for number in range(30):
        tool = published(Tool(name=f"more_{number}"))
        server = published(Server(slug=f"s{number}"))
        if number % 2:
            Stop.objects.make(Scope.DEFINITION, tool, by=LEE)
            Stop.objects.make(Scope.SERVER, server, by=LEE)
    again = f"{AGAIN}?what=server:{Stop.objects.on().wide()[0].ref}"
    for url in (STOPS, f"{STOPS}?q=more", again):
        with django_assert_max_num_queries(10):
            shown(client, url)
