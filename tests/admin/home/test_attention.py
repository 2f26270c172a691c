"""What needs attention, on the home page: each line provoked once, and for whom."""

from __future__ import annotations

import time
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.timezone import now
from pytest_django import Settings

from mcp_app.admin.home import attention
from mcp_app.models import (
    AccessToken,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Stop,
    Tool,
    Worker,
)
from mcp_app.models.stops import By, Scope
from tests.account.apps import many_apps
from tests.admin.calls.rows import MINUTE, crash, write
from tests.admin.page.test_broken_rows import working
from tests.admin.pages import Staff, home, page, page_of
from tests.admin.tasks.test_subscription_admin import subscription
from tests.admin.tasks.test_task_admin import task
from tests.published import published, stopped
from tests.streams.logging_rows import own_session

pytestmark = [pytest.mark.databases, pytest.mark.django_db]


@pytest.fixture(autouse=True)
def _served(db: None) -> None:
    """Let the server that there is be published, and a process serve."""
    Server.objects.publish(Server.objects.all())
    working("here")


def told(client: Client) -> list[tuple[str, str, str]]:
    return [
        (each.word, each.name, unescape(each.sentence))
        for each in home(client).context["concerns"]
    ]


def links(client: Client) -> list[str]:
    concerns = home(client).context["concerns"]
    return [link.url for each in concerns for link in each.links]


def test_nothing(admin_client: Client) -> None:
    published(Tool(name="fine", title="Fine"))
    response = home(admin_client)
    assert response.context["concerns"] == []
    assert "Nothing needs you." in response.content.decode()


def test_tasks_that_nobody_takes(admin_client: Client, settings: Settings) -> None:
    task("new")
    task("asks", status="input_required", updated_ms=1)
    assert told(admin_client) == []
    task("old", updated_ms=1)
    for value, remedy in (
        ("worker", "Start one: manage.py mcp_worker"),
        ("celery", ""),
    ):
        settings.MCP = {"TASKS": value}
        [(word, _, sentence)] = told(admin_client)
        assert word == "Waiting"
        assert sentence.startswith("1 task waits for more than two minutes: no worker")
        assert sentence.endswith(remedy)
    assert links(admin_client) == [f"{page('task')}?status=working"]


def test_receivers_that_have_failed_for_an_hour(staff: Staff) -> None:
    now_ms = int(time.time() * 1_000)
    subscription("order.paid", failed_since_ms=now_ms)
    client = staff("view_eventsubscription", "view_tool")
    assert told(client) == []
    # Two of one receiver.
    for name in ("ticket.opened", "stock.low"):
        subscription(name, failed_since_ms=now_ms - 3_700_000)
    [(word, _, sentence)] = told(client)
    assert (word, sentence) == (
        "Failing",
        "1 receiver of events has failed for an hour.",
    )
    assert links(client) == [f"{page('eventsubscription')}?state=failing"]
    assert "order.paid" in client.get(links(client)[0]).content.decode()
    User.objects.get().user_permissions.clear()
    assert "receiver of events" not in home(client).content.decode()


SAID = "published, but no client sees them: their pages say why."


def test_the_worst_comes_first(admin_client: Client) -> None:
    published(Tool(name="fine", title="Fine"))
    Prompt.objects.create(name="draft", title="Draft")
    changed = published(Resource(name="terms", title="Terms", uri="shop://terms"))
    changed.title = "New terms"
    changed.save()
    stock = published(Tool(name="stock", title="Stock"))
    working("one", stock)
    gone = published(ResourceTemplate(name="order", uri_template="shop://{a}"))
    ResourceTemplate.objects.filter(pk=gone.pk).update(broken="Gone.")
    off = stopped(published(Tool(name="off", title="Off")))
    found = told(admin_client)
    assert [each for each in found if each[0] != "Stopped"] == [
        ("Broken", "", f"2 are {SAID}"),
        ("Changed", "", "1 working copy differs from what clients see."),
        ("Not published", "", "1 draft that clients do not see."),
    ]
    assert [word for word, *_others in found].index("Stopped") == 1
    assert found[1][2].startswith("off is stopped since <time")
    assert links(admin_client) == [
        f"{page('tool')}?state=broken",
        f"{page('resourcetemplate')}?state=broken",
        f"{page('server', 'start_again')}?what=tool:{off.pk}",
        f"{page('resource')}?state=changed",
        f"{page('prompt')}?state=unpublished",
    ]


def test_a_link_leads_to_as_many_rows_as_it_says(admin_client: Client) -> None:
    for number in range(3):
        Tool.objects.create(name=f"draft{number}")
    Server.objects.create(slug="draft")
    (line,) = home(admin_client).context["concerns"]
    assert [link.label for link in line.links] == ["tools (3)", "servers (1)"]
    for link, count in zip(line.links, (3, 1), strict=True):
        rows = admin_client.get(link.url).context["cl"].result_list
        assert len(rows) == count


def test_what_fails_now(staff: Staff) -> None:
    half = [crash(name="weather", ago_ms=n * MINUTE) for n in range(1, 4)]
    write(*half, *({"name": "weather", "ago_ms": n * MINUTE} for n in range(1, 4)))
    # Too few calls, too long ago, fewer than half, and what staff have stopped.
    write(*(crash(name="rare") for _ in range(4)))
    write(*(crash(name="old", ago_ms=20 * MINUTE) for _ in range(9)))
    write(*(crash(name="mostly"), *({"name": "mostly"} for _ in range(4))))
    write(*({"name": "off", "outcome": "switched_off"} for _ in range(9)))
    client = staff("view_call")
    said = "3 of 6 calls in the last 15 minutes failed: crashed."
    assert told(client) == [("Failing", "weather", said)]
    (url,) = links(client)
    lines = client.get(url).context["lines"]
    assert [line["name"] for line in lines] == ["weather"] * 3


def test_everything_is_stopped(admin_client: Client) -> None:
    Stop.objects.make(Scope.EVERYTHING, by=By("kim"), reason="Wrong prices")
    assert home(admin_client).context["strip"]["word"] == "Stopped"
    ((word, _name, sentence),) = told(admin_client)
    assert word == "Stopped"
    assert sentence.startswith("Everything is stopped since")
    assert links(admin_client) == [f"{page('server', 'start_again')}?what=everything"]


def test_no_process(staff: Staff) -> None:
    Worker.objects.all().delete()
    client = staff("view_session")
    # No client was ever here.
    assert told(client) == []
    own_session()
    response = home(client)
    ((word, _name, sentence),) = told(client)
    assert word == response.context["strip"]["word"] == "No process"
    assert sentence.startswith("No process serves clients now.")


def token(user: User, days: float, **columns: object) -> AccessToken:
    ends = now() + timedelta(days=days)
    row, _secret = AccessToken.objects.make(user=user, name="x", expires=ends)
    columns = {"created": now() - timedelta(days=30), **columns}
    AccessToken.objects.filter(pk=row.pk).update(**columns)
    return row


def test_tokens_that_end_soon(staff: Staff) -> None:
    client = staff("view_tool")
    own = User.objects.get(username="kim")
    other = User.objects.create_user("lee")
    token(own, 6.9)
    token(own, 7.1)
    token(own, 3, revoked=now())
    # Who made it for a week knows when it ends.
    token(own, 6.99, created=now())
    token(other, 3)
    token(User.objects.create_user("gone", is_active=False), 3)
    many_apps(own, 1)
    apps = AccessToken.objects.filter(prefix__startswith="app_")
    apps.update(expires=now() + timedelta(days=1))
    said = "1 of your access tokens ends within 7 days."
    assert [each for *_others, each in told(client)] == [said]
    assert client.get(links(client)[0]).context["cl"].result_count == 1


def test_tokens_of_all(staff: Staff) -> None:
    client = staff("manage_tokens")
    for name in ("lee", "max"):
        token(User.objects.create_user(name), 2)
    said = "2 access tokens end within 7 days."
    assert [each for *_others, each in told(client)] == [said]
    assert client.get(links(client)[0]).context["cl"].result_count == 2


def test_eight_lines_and_how_many_more(admin_client: Client) -> None:
    names = [f"t{n}" for n in range(attention.MAX_CONCERNS + 3)]
    rows = [stopped(published(Tool(name=name))) for name in names]
    response = home(admin_client)
    assert len(response.context["concerns"]) == attention.MAX_CONCERNS
    text = " ".join(response.content.decode().split())
    assert f"Needs your attention ({len(rows)})" in text
    assert '<a href="?all">and 3 more</a>' in text
    every = home(admin_client, "?all")
    assert len(every.context["concerns"]) == len(rows)
    assert "more</a>" not in every.content.decode()


EACH = {
    "view_tool": {"Broken", "Stopped", "Changed"},
    "change_tool": {"Broken", "Stopped", "Changed"},
    "view_prompt": {"Not published"},
    "view_server": {"Stopped"},
    "view_session": set(),
    "view_call": {"Failing"},
    "manage_tokens": {"Soon"},
    "view_resource": set(),
    "publish": set(),
}


@pytest.mark.parametrize("right", EACH)
def test_only_what_one_may_view(staff: Staff, right: str) -> None:
    Tool.objects.filter(pk=published(Tool(name="b")).pk).update(broken="Gone.")
    stopped(published(Tool(name="s")))
    Tool.objects.filter(pk=published(Tool(name="c")).pk).update(content_hash="other")
    Prompt.objects.create(name="draft")
    stopped(published(Server(slug="off")))
    write(*(crash() for _ in range(5)))
    token(User.objects.create_user("lee"), 2)
    client = staff(right)
    assert {word for word, *_others in told(client)} == EACH[right]
    # All that is linked may be opened.
    assert {client.get(url).status_code for url in links(client)} <= {200}


# -- servers --------------------------------------------------------------------------


def test_addresses_states_and_ways_in(admin_client: Client) -> None:
    default = Server.objects.get()
    Server.objects.publish([default])
    stopped(published(Server(slug="team", title="For the team", access="public")))
    lines = home(admin_client).context["servers"]
    public = "Public: anyone on the internet, without signing in"
    assert [(each["address"], each["state"].label, each["ways"]) for each in lines] == [
        ("http://testserver/mcp", "Published", "Access token"),
        ("http://testserver/mcp/team", "Stopped", public),
    ]


def test_the_site_may_name_its_address(admin_client: Client, settings: object) -> None:
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}  # type: ignore[attr-defined]
    (line,) = home(admin_client).context["servers"]
    assert line["address"] == "https://shop.example.com/mcp"


def test_many_servers(admin_client: Client) -> None:
    Server.objects.bulk_create(
        Server(slug=f"s{n}") for n in range(attention.MAX_SERVERS)
    )
    response = home(admin_client)
    assert len(response.context["servers"]) == attention.MAX_SERVERS
    assert "All servers" in response.content.decode()


def test_each_server_links_to_its_pages(admin_client: Client) -> None:
    server = Server.objects.get()
    response = home(admin_client)
    (line,) = response.context["servers"]
    pages = {"seen": "What clients see", "connect": "Connect", "check": "Check"}
    urls = [(label, page_of(server, name)) for name, label in pages.items()]
    assert line["links"] == urls
    text = response.content.decode()
    assert all(f'<a href="{url}">{label}' in text for label, url in urls)
