"""The home page as a whole: its strip, the calls of a day, what it costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now
from pytest_django import Settings

from mcp_app.catalog.registry import Registry, mcp
from mcp_app.models import AccessToken, Prompt, Resource, Server, Session, Tool, Worker
from mcp_app.models.definitions import Source
from mcp_app.models.workers import Report
from tests.admin.calls.rows import DAY, HOUR, crash, now_ms, write
from tests.admin.page.test_broken_rows import working
from tests.admin.pages import Staff, home, page, text_of
from tests.published import published
from tests.streams.logging_rows import own_session

pytestmark = [pytest.mark.databases, pytest.mark.django_db]


BUDGET = 15
QUERIES = ("", "?all")
TYPES = ("tool", "prompt", "resource", "resourcetemplate", "server", "call", "session")
VIEWS = [f"view_{each}" for each in TYPES]
GROUPS = ["add_group", "change_group"]


def shown(client: Client, query: str = "") -> str:
    return " ".join(home(client, query).content.decode().split())


def test_the_strip(admin_client: Client) -> None:
    Server.objects.publish(Server.objects.all())
    Server.objects.create(slug="draft")
    working("one")
    working("two")
    report = Report(code="c0de", streams={"default": 3}, sessions=(1,))
    Worker.objects.filter(pk="two").update(report=report.as_text())
    own_session()
    Session.objects.update(seen_ms=now_ms())
    own_session()
    text = shown(admin_client)
    assert '<span class="mcp-state good">Serving</span>' in text
    clients = "1 client in the last 15 minutes"
    assert f"<span>1 server · 2 processes · {clients} <span" in text
    assert "(1 with a session, 0 without)</span>" in text
    assert f'href="{page("server", "stops")}">Stop…</a>' in text


def test_before_the_first_request_the_site_is_ready(admin_client: Client) -> None:
    Server.objects.publish(Server.objects.all())
    text = shown(admin_client)
    assert '<span class="mcp-state good">Ready</span>' in text
    assert "<span>1 server · no client has asked yet</span>" in text


@pytest.mark.parametrize(
    ("right", "said"),
    [
        ("view_server", "<span>1 server</span>"),
        (
            "view_session",
            "<span>1 process · 0 clients with a session in the last 15 minutes</span>",
        ),
        ("view_tool", "<span></span>"),
    ],
)
def test_the_strip_counts_what_one_may_view(
    staff: Staff, right: str, said: str
) -> None:
    working("one")
    text = shown(staff(right))
    assert said in text
    assert page("server", "stops") not in text
    assert (page("session", "live") in text) is (right == "view_session")


def test_the_calls_of_a_day(staff: Staff) -> None:
    write(*({"name": "often", "took_us": 90_000} for _ in range(20)))
    write(*(crash(name="often", took_us=90_000, ago_ms=HOUR) for _ in range(2)))
    write({"name": "often"}, {"ago_ms": 3 * DAY})
    write({"name": "t0", "outcome": "limited", "took_us": 2_000})
    # Five are shown.
    write(*({"name": f"t{n % 5}", "took_us": 2_000} for n in range(55)))
    client = staff("view_call")
    text, context = shown(client), home(client).context["calls"]
    url = page("call")
    assert f'<a href="{url}">Calls, last 24 hours</a>: 79' in text
    assert f'<a href="{url}?outcome=any_failure">2 failed</a>' in text
    assert f'<a href="{url}?outcome=any_refusal">1 were refused</a>' in text
    bars = context["chart"]["bars"]
    numbers = [(bar.answered, bar.refused, bar.failed) for bar in bars]
    assert [sum(each) for each in zip(*numbers, strict=True)] == [76, 1, 2]
    often, *others = context["most_called"]
    figures = [often[each] for each in ("name", "calls", "failed", "most")]
    assert figures == ["often", "23", "2", "90 ms"]
    names = [(each["name"], each["most"]) for each in others]
    assert names == [(f"t{n}", "2 ms") for n in range(4)]
    assert len(client.get(often["url"]).context["lines"]) == 23


def test_no_calls(staff: Staff) -> None:
    write({"ago_ms": 3 * DAY})
    text = shown(staff("view_call"))
    assert "Calls, last 24 hours</a>: 0" in text
    assert "Most called" not in text


def test_without_the_right_there_are_no_calls(staff: Staff) -> None:
    write(crash())
    text = shown(staff("view_tool", "view_session"))
    assert "last 24 hours" not in text
    assert "book_table" not in text


def busy(count: int) -> None:
    """Make so many rows of each kind, in every state, and calls, tokens and tools."""
    server = Server.objects.get()
    Server.objects.publish([server])
    user, _new = User.objects.get_or_create(username="lee")
    Tool.objects.bulk_create(Tool(name=f"draft{n}") for n in range(count))
    Prompt.objects.bulk_create(Prompt(name=f"draft{n}") for n in range(count))
    Resource.objects.bulk_create(
        Resource(name=f"r{n}", uri=f"shop://{n}", broken="Gone.") for n in range(count)
    )
    Server.objects.bulk_create(Server(slug=f"s{n}") for n in range(count))
    ends = {"user": user, "prefix": "mcp_abcdef", "expires": now()}
    AccessToken.objects.bulk_create(
        AccessToken(name="x", digest=f"{n:064}", family=f"{n:032}", **ends)
        for n in range(count)
    )
    published(Tool(name="made"))
    own_session()
    write(*(crash(name=f"t{n % 40}", ago_ms=n * 1_000) for n in range(count)))
    working("one", *Tool.objects.filter(name="made"))


@pytest.mark.parametrize("rights", [("publish", "stop", "manage_tokens"), ()])
def test_any_number_of_rows_costs_the_same(
    staff: Staff, rights: tuple[str, ...]
) -> None:
    client = staff(*VIEWS, "add_tool", *rights)
    busy(10)
    few = {query: statements(client, query) for query in QUERIES}
    Worker.objects.all().delete()
    Server.objects.exclude(slug="default").delete()
    for model in (Tool, Prompt, Resource, AccessToken):
        model.objects.all().delete()
    busy(300)
    many = {query: statements(client, query) for query in QUERIES}
    assert few == many
    assert max(many.values()) <= BUDGET, many


def statements(client: Client, query: str) -> int:
    """Count the statements of the page, one of which reads the newest calls."""
    with CaptureQueriesContext(connection) as done:
        home(client, query)
    of_calls = [f"mcp_app_call{end}" for end in ('"', "`", " ")]
    reads = [each for each in done if any(name in each["sql"] for name in of_calls)]
    assert all("LIMIT 5000" in each["sql"] for each in reads)
    assert len(reads) <= 1
    return len(done)


@pytest.mark.parametrize("rights", [(), ("view_user",)])
def test_a_fresh_site_costs_no_more(staff: Staff, rights: tuple[str, ...]) -> None:
    assert statements(staff(*rights, "add_prompt"), "") <= BUDGET


@pytest.mark.parametrize("users", [(), ("view_user",)])
@pytest.mark.parametrize(
    "rights",
    [
        *(VIEWS, [each for each in VIEWS if each != "view_tool"], VIEWS[:4]),
        *([*VIEWS, *some] for some in (GROUPS[:1], GROUPS, [*GROUPS, "add_tool"])),
    ],
)
def test_a_site_at_its_beginning_with_much_to_see(
    staff: Staff, rights: list[str], users: tuple[str, ...], code: None
) -> None:
    client = staff(*rights, *users)
    assert statements(client, "") <= BUDGET
    Server.objects.bulk_create(Server(slug=f"s{each}") for each in range(25))
    working("one", *map(published, (Tool(name="b"), Tool(name="c"))))
    Tool.objects.update(source=Source.CODE)
    gone = published(Prompt(name="p"))
    Prompt.objects.filter(pk=gone.pk).update(broken="Gone.")
    write(*(crash() for _ in range(9)))
    with CaptureQueriesContext(connection) as done:
        home(client)
    assert len(done) <= BUDGET, len(done)


@pytest.fixture
def code() -> Iterator[None]:
    """Let code declare a tool."""

    @mcp.tool("of_code")
    def of_code() -> str:
        """Do nothing."""
        return ""

    yield
    del mcp.tools["of_code"]


# -- steps -----------------------------------------------------------------------------


MAKE, LET_IN, CONNECT = range(3)


@pytest.fixture(autouse=True)
def _nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, empty in vars(Registry()).items():
        monkeypatch.setattr(mcp, name, empty)


def done(client: Client) -> list[bool]:
    return [step.is_done for step in home(client).context["steps"]]


def test_each_step_is_ticked(admin_client: Client, admin_user: User) -> None:
    assert done(admin_client) == [False] * 3
    assert "How to begin: 0 of 3 done" in shown(admin_client)
    Tool.objects.create(name="draft")
    published(Tool(name="of_code", source=Source.CODE, kind="function"))
    assert not done(admin_client)[MAKE]
    published(Tool(name="made", title="Made"))
    assert done(admin_client)[MAKE]
    assert not done(admin_client)[LET_IN]
    AccessToken.objects.make(user=admin_user, name="laptop")
    assert done(admin_client) == [True, True, False]
    assert page("server", "connect", Server.objects.get().pk) in shown(admin_client)
    own_session()
    assert "How to begin" not in shown(admin_client)


def test_the_empty_list_says_what_code_offers(
    admin_client: Client, settings: Settings
) -> None:
    said = "or with the data and sites that your developers have opened"
    assert said in text_of(admin_client, page("tool"))
    settings.MCP = {**settings.MCP, "HTTP": {}}
    assert "@mcp.tool above it" in text_of(admin_client, page("tool"))


def test_what_lets_nobody_in(admin_client: Client, admin_user: User) -> None:
    """A token that has ended, and a public server before it is published."""
    AccessToken.objects.make(user=admin_user, name="laptop")
    AccessToken.objects.update(revoked="2026-01-01T00:00Z")
    server = Server.objects.get()
    server.access = "public"
    server.save()
    Server.objects.unpublish([server])
    assert not done(admin_client)[LET_IN]
    Server.objects.publish([server])
    assert done(admin_client)[LET_IN]


def test_a_step_says_which_permission_it_needs(staff: Staff) -> None:
    text = home(staff("view_prompt")).content.decode()
    assert "This needs the right “Can add tool”." in text
    assert "Make an access token" in text
    assert "Make a token: its page shows the address" in text
    assert "mcp-servers" not in text


def test_who_may_not_publish_is_told_whom_to_ask(staff: Staff) -> None:
    text = home(staff("add_tool", "view_tool")).content.decode()
    assert "Publishing needs the right “Can publish and roll back”." in text
