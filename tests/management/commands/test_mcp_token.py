"""Tokens by command: what is printed, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.utils import timezone

from mcp_app.management.commands import mcp_token
from mcp_app.models import AccessToken, Connection, Server, Tool
from tests.account.apps import app, end
from tests.published import published

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> Any:
    return get_user_model()._default_manager.create(username="ana")


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("mcp_token", *arguments, stdout=said, stderr=StringIO())
    return said.getvalue().removesuffix("\n")


def notes(*arguments: str) -> str:
    told = StringIO()
    call_command("mcp_token", *arguments, stdout=StringIO(), stderr=told)
    return told.getvalue()


def refusal(*arguments: str) -> str:
    with pytest.raises(CommandError) as raised:
        run(*arguments)
    return str(raised.value)


def test_the_token_alone_is_printed(user: Any) -> None:
    said, told = StringIO(), StringIO()
    call_command("mcp_token", "new", "ana", "a laptop", stdout=said, stderr=told)
    token = said.getvalue().strip()
    row = AccessToken.objects.of(token).get()
    assert said.getvalue() == f"{token}\n"
    assert told.getvalue().splitlines() == [
        "The token of ana for a laptop, shown only now:",
        "Connect Claude Code with it:",
        "  claude mcp add --transport http mcp-project http://127.0.0.1:8000/mcp"
        ' --header "Authorization: Bearer YOUR-TOKEN"',
        "If your site has another host or port, change the address in this line, or set"
        " MCP['PUBLIC_URL'].",
    ]
    assert (row.user, row.name) == (user, "a laptop")
    assert (row.may, row.expires) == ("read", None)


@pytest.mark.usefixtures("user")
def test_what_is_hidden_from_a_token_that_only_reads() -> None:
    text = '{"content": [{"type": "text", "text": "Hello"}]}'
    published(Tool(name="look", tags="shop looks", read_only=True, config=text))
    published(Tool(name="refund", tags="shop money", config=text))
    for slug in ("shop", "looks"):
        published(Server(slug=slug, access="token", selection="tags", tags=slug))
    new = ("new", "ana", "x", "--server", "shop")
    said = "This token only reads: 1 of 2 tools is hidden from it. With --change"
    assert said in notes(*new)
    assert "1 of 1 tools is hidden" in notes(*new, "--tag", "money")
    for more in (("--change",), ("--tag", "looks")):
        assert "only reads" not in notes(*new, *more)
    assert "only reads" not in notes("new", "ana", "x", "--server", "looks")
    Server.objects.filter(slug="shop").update(access="public")
    assert "The server 'shop' is public: it looks at no token" in notes(*new)


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("user")
def test_on_a_terminal_the_line_can_be_pasted() -> None:
    """Piped into a file, the token is not to appear on the screen."""
    Server.objects.create(slug="shop")
    said, told = Terminal(), StringIO()
    arguments = ("new", "ana", "a laptop", "--server", "shop")
    call_command("mcp_token", *arguments, stdout=said, stderr=told)
    line = told.getvalue().splitlines()[2]
    assert f'Bearer {said.getvalue().strip()}"' in line
    assert " mcp-project-shop http://127.0.0.1:8000/mcp/shop " in line


@pytest.mark.usefixtures("user")
def test_only_an_error_is_red() -> None:
    command = mcp_token.Command(stdout=Terminal(), stderr=Terminal())
    command.stderr.style_func = "<red>{}".format
    call_command(command, "new", "ana", "a laptop")
    told = command.stderr.getvalue()
    assert "The token of ana for a laptop, shown only now:" in told
    assert "<red>" not in told


@pytest.mark.usefixtures("user")
def test_an_address_from_the_settings_needs_no_change(settings: Any) -> None:
    settings.MCP = {**settings.MCP, "PUBLIC_URL": "https://mcp.example.com"}
    told = notes("new", "ana", "a laptop")
    assert " https://mcp.example.com/mcp " in told
    assert "change the address" not in told


def test_a_second_token_of_the_same_name_is_noted(user: Any) -> None:
    noted = "ana has another token with this name: mcp_"
    other = get_user_model()._default_manager.create(username="bert")
    AccessToken.objects.make(user=other, name="a laptop")
    assert noted not in notes("new", "ana", "a laptop")
    assert noted in notes("new", "ana", "a laptop")
    app(user)
    assert "another token" not in notes("new", "ana", "Claude")
    AccessToken.objects.update(revoked=timezone.now())
    assert noted not in notes("new", "ana", "a laptop")


def test_all_that_a_token_may_be_limited_to(user: Any) -> None:
    server = Server.objects.create(slug="shop")
    token = run(
        *("new", "ana", "a laptop", "--change", "--tag", "a", "--tag", "b"),
        *("--server", "shop", "--network", "10.0.0.0/8", "--network", "::1"),
        *("--expires-in", "90d"),
    )
    row = AccessToken.objects.of(token).get()
    assert (row.may, row.tags, row.networks) == ("change", "a b", "10.0.0.0/8 ::1")
    assert list(row.servers.all()) == [server]
    assert row.expires is not None
    ends_in = row.expires - timezone.now()
    assert timedelta(days=89, hours=23) < ends_in <= timedelta(days=90)


@pytest.mark.parametrize("longest", ["36500d", "876000h"])
def test_the_longest_time_is_taken(user: Any, longest: str) -> None:
    token = run("new", "ana", "x", "--expires-in", longest)
    row = AccessToken.objects.of(token).get()
    assert row.expires is not None
    assert row.expires - timezone.now() > timedelta(days=36_499, hours=23)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("new", "bert", "x"), "There is no active user whose username is “bert”."),
        (("new", "gone", "x"), "There is no active user whose username is “gone”."),
        (("new", "ana", ""), "This field cannot be blank."),
        (("new", "ana", "x", "--server", "no"), "There is no MCP server 'no' here."),
        (("new", "ana", "x", "--network", "home"), "“home” is not a network"),
        (("new", "ana", "x", "--tag", "a/b"), "“a/b” cannot be a tag"),
        (("new", "ana", "x", "--network", ""), "--network '' has no entry"),
        (("new", "ana", "x", "--tag", ","), "--tag ',' has no entry"),
        (("new", "ana", "x", "--server", "\udcff"), "is not a text"),
        (("revoke", "mcp_\udcff12345"), "is not a text"),
        (("new", "ana", "x", "--expires-in", "soon"), "'soon' is not a time"),
        (("new", "ana", "x", "--expires-in", "9" * 30 + "d"), "is too long"),
        (("new", "ana", "x", "--expires-in", "36501d"), "is too long: at most 36500d"),
        (
            ("list", "--user", "bert"),
            "There is no active user whose username is “bert”.",
        ),
        (("revoke", "mcp_000000"), "No token begins with 'mcp_000000'"),
        (("revoke", ""), "No token begins with ''"),
    ],
)
def test_what_is_refused(user: Any, arguments: tuple[str, ...], said: str) -> None:
    get_user_model()._default_manager.create(username="gone", is_active=False)
    assert said in refusal(*arguments)
    assert not AccessToken.objects.exists()


def test_no_name_reaches_the_terminal_as_it_is(user: Any) -> None:
    user.username = "eve\x1b[2J"
    user.save()
    AccessToken.objects.make(user=user, name="x")
    assert "eve⟦U+001B⟧[2J" in run("list")


def test_a_database_that_is_away(user: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    row, _ = AccessToken.objects.make(user=user, name="x")

    def fails(_: object) -> None:
        raise OperationalError("away")

    monkeypatch.setattr(AccessToken, "revoke", fails)
    assert "The database reported an error: away" in refusal("revoke", row.prefix)


def test_tokens_are_listed_until_they_end(user: Any) -> None:
    assert run("list") == "There are no tokens."
    server = Server.objects.create(slug="shop")
    one, two = (run("new", "ana", name) for name in ("a laptop", "a job"))
    first = AccessToken.objects.of(one).get()
    first.servers.add(server)
    AccessToken.objects.filter(pk=first.pk).update(networks="::1", tags="new")
    title, *lines = run("list").splitlines()
    assert title.split() == ["token", "user", "for", "may", "where", "last", "used",
                             "ends"]  # fmt: skip
    assert len(lines) == 2
    (shown,) = (line for line in lines if "laptop" in line)
    assert "shop ::1 #new" in shown
    assert one not in "".join(lines)
    run("revoke", one[:10])
    assert "laptop" not in run("list", "--user", "ana")
    assert "revoked" in run("list", "--all")
    assert two[:10] in run("list")


@pytest.mark.parametrize("named", ["prefix", "shown", "whole"])
def test_a_token_is_revoked_once(user: Any, named: str) -> None:
    token = run("new", "ana", "a laptop")
    given = {"prefix": token[:10], "shown": f"{token[:10]}…", "whole": token}[named]
    said = run("revoke", given)
    assert said == f"Revoked {token[:10]}… of ana: a laptop."
    assert AccessToken.objects.of(token).get().revoked is not None
    assert f"{token[:10]}… was revoked at" in refusal("revoke", given)


def test_two_that_begin_alike_are_told_apart(user: Any) -> None:
    token, other = run("new", "ana", "a"), run("new", "ana", "b")
    AccessToken.objects.update(prefix=token[:10])
    assert refusal("revoke", token[:10]).startswith("2 tokens begin with")
    # What else is given is no token, and decides nothing.
    assert refusal("revoke", f"{token[:10]}xyz").startswith("2 tokens begin with")
    run("revoke", token)
    assert AccessToken.objects.of(token).get().revoked
    assert not AccessToken.objects.of(other).get().revoked


def test_the_next_token(user: Any) -> None:
    token = run("new", "ana", "a laptop", "--change")
    new = run("replace", token[:10], "--overlap", "2h")
    old, row = (AccessToken.objects.of(each).get() for each in (token, new))
    assert (row.family, row.may) == (old.family, "change")
    assert old.expires is not None
    assert old.expires - timezone.now() <= timedelta(hours=2)
    run("revoke", new[:10])
    assert "has ended" in refusal("replace", new[:10])


def test_connected_apps_are_listed_apart(user: Any) -> None:
    run("new", "ana", "a laptop")
    assert run("list", "--apps") == "There are no connected apps."
    row = app(user, tags="orders", used=timezone.now())
    gone = app(user, host="", redirect="http://localhost/cb", may="read")
    end(gone, "refresh")
    assert "Claude" not in run("list", "--all")
    head, line = run("list", "--apps").splitlines()
    assert head.split() == [
        *["app", "name", "host", "user", "server", "may", "ends", "last", "used"]
    ]
    said = ["Claude", "claude.ai", "ana", "support", "Read", "and", "change", "#orders"]
    assert line.split()[:9] == [row.prefix, *said]
    assert f"{row.used:%Y-%m-%d %H:%M}" in line
    assert "a laptop" not in line
    both = run("list", "--apps", "--all", "--user", "ana")
    assert "a program on this computer" in both
    assert "An old key of it was used again." in both


def test_an_app_is_ended_once(user: Any) -> None:
    row, other = app(user), app(user)
    assert "connected app is not replaced." in refusal("replace", row.prefix)
    said = run("revoke", row.prefix)
    assert said == f"Ended {row.prefix} of ana: Claude."
    assert Connection.objects.get(pk=row.pk).ended == "staff"
    assert f"{row.prefix} was ended at " in refusal("revoke", row.prefix)
    other.refresh_from_db()
    assert other.revoked is None


@pytest.mark.parametrize("handle", ["app_", "app_00000000", "app_%", "app_\x1b[0m"])
def test_an_app_that_is_not_there(user: Any, handle: str) -> None:
    app(user)
    said = refusal("revoke", handle)
    assert "There is no connected app" in said
    assert "\x1b" not in said
    assert AccessToken.objects.get().revoked is None
