"""The page *Connect*: what clients are given, a token once, and what came in."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from html import unescape
from io import StringIO
from typing import Any, Final

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.test import Client, RequestFactory
from django.utils import timezone
from pytest_django import Settings

from mcp_app.account.client_configs import CLIENTS, command_line, server_name
from mcp_app.account.client_formats import TOKEN
from mcp_app.account.presentation import reveal_token
from mcp_app.admin.servers.connect import refused_sentence
from mcp_app.audit.turned_away import Reason
from mcp_app.interface.principal import ACCESS_TOKEN, Principal
from mcp_app.models import AccessToken, Server
from mcp_app.models.tokens import Secret
from tests.account.conftest import ONCE
from tests.admin.calls.rows import HOUR, write
from tests.admin.operations.test_live import MARKUP, session, worker
from tests.admin.pages import Queries, Staff, page
from tests.published import published, stopped

pytestmark = pytest.mark.django_db

LIVE: Final = "data-mcp-live"
TEXT: Final = re.compile(r'<pre[^>]* id="mcp-(\w+)"[^>]*>(.*?)</pre>', re.DOTALL)
ALREADY: Final = "This token was already shown."
SITE: Final = "https://shop.example.org"
SIGN_IN: Final = {
    "PUBLIC_URL": SITE,
    "AUTHENTICATION": {
        "token": "mcp_app.authentication.access_token",
        "oauth": "mcp_app.authentication.oauth",
        "session": "mcp_app.authentication.django_session",
    },
}


@pytest.fixture
def shop() -> Server:
    return published(Server(slug="shop", title="The shop", access="token"))


@pytest.fixture
def kim(staff: Staff) -> Client:
    """Return the browser of somebody who may see servers, and nothing else."""
    return staff("view_server")


def url(server: Server, **query: object) -> str:
    given = "&".join(f"{name}={value}" for name, value in query.items())
    return f"{page('server', 'connect', server.pk)}?{given}"


def text_of(answer: Any, status: int = 200) -> str:
    """Return what a person reads on a page that no cache may keep."""
    assert answer.status_code == status
    assert "no-store" in answer["Cache-Control"]
    words = re.sub(r"<[^>]+>", "", answer.content.decode())
    return " ".join(unescape(words).split())


def shown(answer: Any) -> dict[str, str]:
    """Return the texts to copy, by their names."""
    found = TEXT.findall(answer.content.decode())
    return {name: unescape(text) for name, text in found}


def link(answer: Any, scheme: str) -> str:
    found = re.search(rf'href="({scheme}:[^"]*)"', answer.content.decode())
    assert found
    return unescape(found[1])


def make(client: Client, server: Server, key: str = "claude-code", **typed: str) -> Any:
    """Fill in the form of the page, and send it."""
    address = url(server, client=key)
    found = ONCE.search(client.get(address).content.decode())
    assert found
    return client.post(address, {"name": "mine", "once": found[1], **typed})


def waiting(answer: Any, part: str = LIVE) -> str:
    """Return where the page is asked again, or only its part."""
    found = re.search(rf'{part}="(\?[^"]*token=[^"]+)"', answer.content.decode())
    assert found
    return unescape(found[1])


# -- what is written for each client -----------------------------------------------


@pytest.mark.parametrize("key", CLIENTS)
def test_three_places_write_the_same(
    admin_client: Client, key: str, settings: Settings
) -> None:
    settings.MCP = {"PUBLIC_URL": SITE}
    Server.objects.update(access="token")
    server = published(Server.objects.get())
    answer = make(admin_client, server)
    token = Secret(shown(answer)["token"])
    row = AccessToken.objects.get()

    said = StringIO()
    call_command("mcp_config", key, "--transport=http", stdout=said, stderr=StringIO())
    request = RequestFactory().get("/", headers={"host": "testserver"})
    files = reveal_token(request, row, token)["files"]
    [theirs] = [each for each in files if each["key"] == key]
    mine = shown(admin_client.get(url(server, client=key)))
    assert theirs["text"].replace(token, TOKEN) == said.getvalue()
    if CLIENTS[key].signs_in:
        assert mine == {"address": f"{SITE}/mcp"}
        assert said.getvalue() == f"{SITE}/mcp\n"
    else:
        assert mine["text"] == said.getvalue()


def test_a_line_and_a_file_for_claude_code(kim: Client, shop: Server) -> None:
    found = shown(kim.get(url(shop)))
    address = "http://testserver/mcp/shop"
    assert found["address"] == address
    assert found["line"] == command_line(server_name("shop"), address, TOKEN)
    assert TOKEN in found["text"]


def test_the_client_is_chosen_by_the_address(kim: Client, shop: Server) -> None:
    for key, client in CLIENTS.items():
        answer = kim.get(url(shop, client=key))
        assert f'aria-current="page">{client.title}<' in answer.content.decode()
        assert f"documentation in {client.month_checked:%B %Y}." in text_of(answer)
    assert "2. Connect Claude Code" in text_of(kim.get(url(shop, client="<b>")))


@pytest.mark.parametrize("key", ["cursor", "vscode"])
def test_no_link_has_a_token(kim: Client, shop: Server, key: str) -> None:
    before = kim.get(url(shop, client=key))
    made = make(kim, shop, key)
    token = shown(made)["token"]
    assert link(made, key) == link(before, key)
    assert token not in link(made, key)
    raw = made.content.decode()
    links = re.findall(r'(?:href|action|src|data-mcp-live)="([^"]*)"', raw)
    assert [each for each in links if token in each] == []


# -- a token ------------------------------------------------------------------------


def test_a_token_is_made_and_shown_once(kim: Client, shop: Server) -> None:
    answer = make(kim, shop)
    found = shown(answer)
    row = AccessToken.objects.get()
    assert AccessToken.objects.of(found["token"]).get() == row
    assert (row.name, row.may, row.user.username) == ("mine", "read", "kim")
    assert [*row.servers.all()] == [shop]
    assert not row.everywhere
    assert row.expires is not None
    left = row.expires - timezone.now()
    assert timedelta(days=29, hours=23) < left <= timedelta(days=30)
    assert f'"Authorization: Bearer {found["token"]}"' in found["line"]
    assert found["token"] in found["text"]
    assert "Nothing came in with this token yet." in text_of(answer)
    assert LogEntry.objects.filter(object_id=row.pk).count() == 1


def test_a_box_lets_it_change_things(kim: Client, shop: Server) -> None:
    make(kim, shop, change="on")
    assert AccessToken.objects.get().may == "change"


def test_reload_shows_nothing_and_makes_nothing(kim: Client, shop: Server) -> None:
    answer = make(kim, shop)
    token = shown(answer)["token"]
    request = answer.wsgi_request
    for said in ("Nothing came in", "Something came in"):
        again = kim.post(request.get_full_path(), request.POST.dict())
        assert ALREADY in text_of(again)
        assert token not in again.content.decode()
        assert f"{said} with this token" in text_of(again)
        used(row_of(answer))
    assert AccessToken.objects.count() == 1
    assert token not in kim.get(waiting(answer, "href")).content.decode()


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "a\u202eb"])
def test_a_name_that_cannot_be_is_told_at_its_field(
    kim: Client, shop: Server, name: str
) -> None:
    answer = make(kim, shop, name=name)
    assert "Please correct the error below." in text_of(answer)
    assert 'class="errorlist"' in answer.content.decode()
    assert not AccessToken.objects.exists()


def test_a_form_without_its_number_makes_nothing(kim: Client, shop: Server) -> None:
    assert "This field is required." in text_of(kim.post(url(shop), {"name": "mine"}))
    assert not AccessToken.objects.exists()


# -- who may ------------------------------------------------------------------------


@pytest.mark.parametrize("right", ["view_tool", "change_tool", "manage_tokens"])
def test_who_may_not_view_servers_gets_nothing(
    staff: Staff, shop: Server, right: str
) -> None:
    client = staff(right)
    sent = {"name": "mine", "once": "0" * 32}
    assert client.get(url(shop)).status_code == 403
    assert client.post(url(shop), sent).status_code == 403
    assert not AccessToken.objects.exists()


def test_nobody_gets_the_login(client: Client, shop: Server) -> None:
    for answer in (client.get(url(shop)), client.post(url(shop), {"name": "mine"})):
        assert answer.status_code == 302
        assert "/login/" in answer["Location"]


def test_a_server_that_is_not_there(kim: Client, shop: Server) -> None:
    for key in (shop.pk + 1, "x", "9" * 40):
        assert kim.get(page("server", "connect", key)).status_code == 404


def refused(client: Client, server: Server) -> str:
    """Return why no token is made, whatever is sent."""
    sent = {"name": "mine", "once": "0" * 32}
    said = text_of(client.post(url(server), sent), 403)
    assert text_of(client.get(url(server))) == said
    assert not AccessToken.objects.exists()
    assert "Make a token" not in said
    return said


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"groups": "Support"},
            "You may not use this server yourself: it lets in everyone in Support.",
        ),
        ({"permission": "auth.view_group"}, "lets in everyone with auth.view_group."),
        (
            {"rule": "shop.gone"},
            "everyone who may log in at this site whom a rule in code admits.",
        ),
        ({"access": ""}, "This server lets nobody in."),
        ({"access": "public"}, "This server is public: it needs no token."),
    ],
)
def test_who_may_not_use_the_server_is_told_who_may(
    kim: Client, shop: Server, columns: dict[str, str], said: str
) -> None:
    Server.objects.update(**columns)
    assert said in refused(kim, shop)
    support = Group.objects.create(name="Support")
    support.permissions.add(Permission.objects.get(codename="view_group"))
    User.objects.get().groups.add(support)
    if columns.keys() & {"groups", "permission"}:
        assert shown(make(kim, shop))["token"]


def test_a_public_server_shows_no_token(kim: Client, shop: Server) -> None:
    Server.objects.update(access="public")
    for key in CLIENTS:
        answer = kim.get(url(shop, client=key))
        assert TOKEN not in answer.content.decode()
        assert "Authorization" not in str(shown(answer))


def test_a_server_that_takes_no_tokens(
    kim: Client, shop: Server, settings: Settings
) -> None:
    settings.MCP = SIGN_IN
    Server.objects.update(access="session")
    assert "It takes: Signed-in users of this site." in refused(kim, shop)


@pytest.mark.parametrize("key", ["claude", "chatgpt"])
def test_who_only_signs_in(
    kim: Client, shop: Server, settings: Settings, key: str
) -> None:
    title = CLIENTS[key].title
    lacking = f"{title} needs a sign-in, and this server has no sign-in."
    assert lacking in text_of(kim.get(url(shop, client=key)))
    settings.MCP = SIGN_IN
    assert lacking in text_of(kim.get(url(shop, client=key)))
    Server.objects.update(access="token oauth")
    answer = kim.get(url(shop, client=key))
    assert f"{title} takes no token: it opens a page of this site" in text_of(answer)
    assert "mcp-text" not in answer.content.decode()
    sent = {"name": "mine", "once": "0" * 32}
    assert kim.post(url(shop, client=key), sent).status_code == 403
    assert not AccessToken.objects.exists()
    assert "Programs can also sign in here" in text_of(kim.get(url(shop)))


def test_an_address_of_this_computer_alone(kim: Client, shop: Server) -> None:
    said = "Only programs on this computer can use this address."
    for host in ("localhost:8000", "127.0.0.1"):
        assert said in text_of(kim.get(url(shop), headers={"host": host}))
    assert said not in text_of(kim.get(url(shop)))


def test_a_server_that_is_stopped_says_so(kim: Client, shop: Server) -> None:
    stopped(shop)
    assert "Stopped" in text_of(kim.get(url(shop)))


# -- what came in -------------------------------------------------------------------


def row_of(answer: Any) -> AccessToken:
    row: AccessToken = answer.context["made"]
    return row


def used(row: AccessToken) -> None:
    AccessToken.objects.note_uses([row.pk], timezone.now())


def came(client: Client, answer: Any) -> str:
    """Return what the part says now; the page says it, too."""
    said = text_of(client.get(page_of(answer) + waiting(answer)))
    assert said in text_of(client.get(page_of(answer) + waiting(answer, "href")))
    return said


def page_of(answer: Any) -> str:
    path: str = answer.wsgi_request.path
    return path


def test_the_first_use_is_told(kim: Client, shop: Server) -> None:
    answer = make(kim, shop)
    assert came(kim, answer) == "Waiting Nothing came in with this token yet."
    used(row_of(answer))
    said = came(kim, answer)
    when = r"Connected Something came in with this token: \d\d:\d\d:\d\d\."
    assert re.fullmatch(when, said)


@pytest.mark.databases
def test_a_session_names_the_client(kim: Client, shop: Server) -> None:
    row = row_of(answer := make(kim, shop))
    used(row)
    key = Principal(kind=ACCESS_TOKEN, user_id=str(row.user_id), client=row.family).key
    session(1, principal_key=key, server="default", client_info='{"name": "no"}')
    session(2, principal_key=key, server="shop")
    session(3, server="shop", client_info='{"name": "of somebody else"}')
    assert "It is Claude Code 2.1, which speaks the 2025-11-25" in came(kim, answer)


def test_a_call_names_a_client_without_a_session(kim: Client, shop: Server) -> None:
    row = row_of(answer := make(kim, shop))
    used(row)
    about = {"user_name": "kim", "revision": "2026-07-28"}
    mine = {"principal_client": row.family, **about}
    write(
        {"client_name": "other", "principal_client": "f" * 32, **about},
        {"client_name": MARKUP, "client_version": "3", **mine},
        {"client_name": "old", "ago_ms": HOUR, **mine},
    )
    raw = kim.get(page_of(answer) + waiting(answer)).content.decode()
    assert MARKUP not in raw
    assert f"It is {MARKUP} 3, which speaks the 2026-07-28 version." in unescape(raw)


def hour_ms(ago: int = 0) -> int:
    hour = 3_600_000
    return int(timezone.now().timestamp() * 1_000) // hour * hour - ago * hour


def test_refusals_since_then_are_told(kim: Client, shop: Server) -> None:
    before = ((hour_ms(), Reason.NOBODY, "a", 4), (hour_ms(1), Reason.HOST, "a", 9))
    worker("a", refused=before)
    answer = make(kim, shop)
    assert "Meanwhile" not in came(kim, answer)
    worker("b", refused=((hour_ms(), Reason.NOBODY, "curl", 3),))
    assert "Refused Meanwhile 3 requests were refused: no token." in came(kim, answer)
    assert "What was refused" not in came(kim, answer)
    worker("c", refused=((hour_ms(), "of a later release", "", 5),))
    said = "Meanwhile 8 requests were refused: another reason (5), no token (3)."
    assert said in came(kim, answer)


def test_the_page_of_refusals_is_for_who_sees_calls(staff: Staff, shop: Server) -> None:
    client = staff("view_server", "view_call")
    answer = make(client, shop)
    worker("a", refused=((hour_ms(), Reason.NOBODY, "curl", 1),))
    assert "Meanwhile 1 request was refused: no token." in came(client, answer)
    part = page_of(answer) + waiting(answer)
    assert page("call", "refused") in client.get(part).content.decode()


def test_each_reason_has_words() -> None:
    for reason in Reason:
        said = refused_sentence(Counter({reason: 1}))
        known = reason is Reason.OTHER or "another reason" not in said
        assert known, reason


def test_a_token_of_somebody_else_is_not_told_of(kim: Client, shop: Server) -> None:
    other = User.objects.create_superuser("root")
    row, _ = AccessToken.objects.make(user=other, name="of root", servers=[shop])
    used(row)
    address = url(shop, token=row.pk)
    assert "Something came in" not in text_of(kim.get(address))
    assert kim.get(f"{address}&part=contact").status_code == 404
    for odd in ("", "x", "9" * 40, "-1"):
        asked = url(shop, token=odd, before="no.x-y..-nobody.99999999999")
        assert "Something came in" not in text_of(kim.get(asked))
        assert kim.get(f"{asked}&part=contact").status_code == 404


def test_what_is_noted_in_the_address_can_be_anything(
    kim: Client, shop: Server
) -> None:
    row = row_of(make(kim, shop))
    worker("a", refused=((hour_ms(), Reason.NOBODY, "curl", 3),))
    for before in ("-" * 5_000, "%00", "nobody.-1", "nobody.1.2", "x" * 9_000):
        said = text_of(kim.get(url(shop, token=row.pk, before=before)))
        assert "Meanwhile 3 requests were refused" in said


# -- what it costs ------------------------------------------------------------------


def test_as_many_statements_with_many_rows(
    kim: Client, shop: Server, django_assert_max_num_queries: Queries
) -> None:
    Server.objects.update(groups="Support")
    User.objects.get().groups.add(Group.objects.create(name="Support"))
    row = row_of(answer := make(kim, shop))
    for number in range(12):
        published(Server(slug=f"s{number}", access="token"))
        worker(f"w{number}", refused=((hour_ms(), Reason.NOBODY, "a", 1),))
        AccessToken.objects.make(user=row.user, name="more", servers=[shop])
        write({"user_name": "kim", "principal_client": row.family})
        session(number + 1, server="shop")
    used(row)
    waits = [page_of(answer) + waiting(answer, part) for part in ("href", LIVE)]
    for asked in (url(shop), *waits):
        with django_assert_max_num_queries(10):
            assert kim.get(asked).status_code == 200
