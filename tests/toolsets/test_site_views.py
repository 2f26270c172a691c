"""The door to the site's views: who comes in, where to, and what comes out."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import translation
from pytest_django import Settings

from mcp_app.interface.errors import ToolError
from mcp_app.models import Server
from mcp_app.test import Client
from mcp_app.toolsets.answers import known_item
from tests.toolsets.people import client_of, person
from tests.toolsets.views import Closing, registry


@pytest.fixture(autouse=True)
def _site(db: None, settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.toolsets.views"
    settings.LOGIN_URL = "login"
    settings.MCP = {"PUBLIC_URL": "https://shop.example.com"}
    settings.ALLOWED_HOSTS = ["shop.example.com", "testserver"]
    memory = "django.core.cache.backends.locmem.LocMemCache"
    names = ("default", "other")
    made = {n: {"BACKEND": memory, "LOCATION": n} for n in names}
    settings.CACHES = {**made, "broken": {"BACKEND": "no.such.Cache"}}
    for name in names:
        caches[name].clear()


@pytest.fixture
def client() -> Client:
    return client_of(person("maria"), registry)


def visit(client: Client, address: str, **options: str) -> Any:
    return client.try_call("visit_page", address=address, **options)


SENTENCES = {
    "html": "/html answers with a page, which is not read.",
    "wrong": "number: It is taken.\nlines[0].amount: No.",
    "conflict": "Somebody was faster.",
    "unfit": "The site refused this request (422).",
    "unknown": "There is no such thing, or it is not yours.",
    "gone": "There is no such thing, or it is not yours.",
    "forbidden": "You may not do this.",
    "stranger": "You may not do this.",
    "bad": "The site refused this request (400).",
    "often": "Try again in 20 seconds.",
    "often_still": "Try again later.",
    "post_only": "This cannot be done to it.",
    "move": "The site wants something done in a browser first (/elsewhere/).",
    "login_first": "You may not do this.",
    "waiting": "/waiting answers with a stream that has no end.",
}


def test_what_fails_is_a_sentence(client: Client) -> None:
    for address, sentence in SENTENCES.items():
        result = visit(client, address)
        assert (result.is_error, result.text) == (True, sentence), address
    for address in ("large", "endless"):
        assert visit(client, address).text.startswith("The answer has more than ")


def test_what_answers_is_a_result(client: Client) -> None:
    assert visit(client, "object").data == {"a": 1}
    assert visit(client, "list").data == [1, 2]
    assert visit(client, "text").text == "plain"
    assert visit(client, "broken").text == "{"
    assert visit(client, "nothing").text == "Done."
    assert visit(client, "post_only", method="POST").text == "done"
    assert visit(client, "slowly").text == "maria"
    [image] = visit(client, "image").content
    assert image["mimeType"] == "image/png"
    [file] = visit(client, "file").content
    assert file["resource"]["mimeType"] == "application/zip"
    assert file["_meta" if "_meta" in file else "type"]
    visit(client, "closing")
    assert Closing.closed_by == ["site"]


@pytest.mark.parametrize("address", ["crash", "away"])
def test_a_crash_is_that_of_a_tool(
    client: Client, settings: Settings, address: str
) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.toolsets.views.catch_all"]
    with pytest.raises(ZeroDivisionError if address == "crash" else RuntimeError):
        client.call("visit_page", address=address)
    assert "secret" not in visit(client, address).text


def test_a_redirect_after_writing_is_done_once(client: Client) -> None:
    result = visit(client, "write", method="POST")
    assert result.data == {"see": "/elsewhere/", "messages": ["It is there."]}
    assert Group.objects.get().name == "a b"


def test_a_view_gets_the_caller_and_nothing_of_the_client(client: Client) -> None:
    known = visit(client, "who?x=1", view="who", method="POST").data
    digests = ["HTTP_AUTHORIZATION", "HTTP_COOKIE"]
    usual = ["HTTP_ACCEPT", "HTTP_HOST", "HTTP_USER_AGENT"]
    assert known == {
        "user": "maria",
        "host": "shop.example.com",
        "secure": True,
        "path": "/who?x=1",
        "headers": sorted([*digests, *usual]),
        "address": "0.0.0.0",  # noqa: S104 - not known
        "note": "a b",
        "language": "en-us",
    }
    visit(client, "activate")
    assert translation.get_language() == "en-us"


def test_the_host_is_one_that_the_site_allows(
    client: Client, settings: Settings
) -> None:
    for allowed, host in (
        (["*"], "shop.example.com"),
        ([".example.org"], "example.org"),
        (["10.0.0.1", "shop.example.com"], "shop.example.com"),
    ):
        settings.ALLOWED_HOSTS = allowed
        assert visit(client, "who").data["host"] == host


KEYS = ["export", "7/send", "7%2Fsend", "../who", "..%2fwho", "7/", "%2e%2e/who"]


def test_a_key_leads_to_no_other_view(client: Client) -> None:
    for key in KEYS:
        result = visit(client, f"orders/{key}", view="order")
        assert result.text == SENTENCES["unknown"], key
    assert visit(client, "orders/..", view="order").text == "page .."


def test_a_view_learns_the_address_of_an_anonymous_caller() -> None:
    Server.objects.update(access="public")
    client = client_of(None, registry)
    for person_key, address in (
        ("", "0.0.0.0"),  # noqa: S104 - not known
        ("@203.0.113.7", "203.0.113.7"),
        ("@2001:db8::/64", "2001:db8::"),
    ):
        assert client.tools()
        client._client._connection.person = person_key
        assert visit(client, "who").data["address"] == address


@pytest.mark.parametrize("name", ["maria", "boss"])
def test_a_middleware_that_swaps_the_user_is_stopped(
    settings: Settings, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    people = {
        each: person(each, is_superuser=each == "boss") for each in ("maria", "boss")
    }
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.toolsets.views.swap_user"]
    with caplog.at_level(logging.ERROR, "mcp_app.toolsets"):
        result = visit(client_of(people[name], registry), "named")
    assert result.is_error == (name == "maria")
    assert ("in the place of the caller" in caplog.text) == (name == "maria")


def test_what_a_middleware_wants_first_is_told(
    client: Client, settings: Settings
) -> None:
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "tests.toolsets.views.second_factor"]
    for method in ("GET", "POST"):
        text = visit(client, "write", method=method).text
        assert text == (
            "The site wants something done in a browser first (/accounts/2fa/)."
        )
    assert not Group.objects.exists()


def test_no_session_is_left(client: Client, settings: Settings) -> None:
    settings.SESSION_SAVE_EVERY_REQUEST = True
    for _ in range(2):
        assert visit(client, "remember").data == {"visits": 1}
    assert not Session.objects.exists()


def test_a_site_without_sessions_knows_the_caller(
    client: Client, settings: Settings
) -> None:
    gone = ("sessions", "messages", "auth")
    settings.MIDDLEWARE = [
        each for each in settings.MIDDLEWARE if each.split(".")[2] not in gone
    ]
    assert visit(client, "named").text == "maria reads this"


DJANGOS = "django.middleware.cache"
CACHES = [
    [],
    [f"{DJANGOS}.UpdateCacheMiddleware", f"{DJANGOS}.FetchFromCacheMiddleware"],
    ["tests.toolsets.views.cache_by_vary"],
]
PRIVATE = ("named", "cached_cookie", "fresh")
"""What the site gives nobody else, in a browser either."""
CACHED = ("cached", "cached_public", "cached_class", "cached_method", "cached_drf")
"""What a browser may get from a cache of the site: nothing says that it varies."""


Read = Callable[[str, str], str]


@pytest.fixture(params=CACHES)
def read(settings: Settings, request: pytest.FixtureRequest) -> Read:
    """Return what somebody reads at an address, by a tool or in a browser."""
    around = request.param
    settings.MIDDLEWARE = [*around[:1], *settings.MIDDLEWARE, *around[1:]]
    # They share an address: a host is part of what caches go by.
    host: Any = {"Host": "shop.example.com"}
    readers: dict[str, Any] = {"browser of nobody": Browser(headers=host)}
    for name in ("maria", "joana"):
        user = person(name)
        readers[f"tool of {name}"] = client_of(user, registry)
        browser = readers[f"browser of {name}"] = Browser(headers=host)
        browser.force_login(user)

    def read(name: str, address: str) -> str:
        reader = readers[name]
        if isinstance(reader, Browser):
            return reader.get(f"/{address}", secure=True).content.decode()
        return str(visit(reader, address).text)

    return read


def test_no_cache_gives_one_caller_the_answer_of_another(read: Read) -> None:
    """Tools and browsers, with and without a login, in both orders."""
    browsers = ["browser of nobody", "browser of maria", "browser of joana"]
    readers = ["tool of maria", *browsers, "tool of joana"]
    for address in PRIVATE:
        for name in (*readers, *readers[::-1], *readers):
            expected = f"{name.split()[-1]} reads this"
            assert read(name, address) == expected, (address, name)
    tokens = {read(name, "cached_token") for name in (readers[0], readers[-1])}
    assert len(tokens) == 2
    assert read("browser of nobody", "cached_token") == "nobody reads this"


@pytest.mark.parametrize("address", CACHED)
def test_an_answer_to_a_call_is_in_no_cache(read: Read, address: str) -> None:
    for name in ("tool of maria", "tool of joana", "browser of nobody"):
        assert read(name, address) == f"{name.split()[-1]} reads this"
    # What a browser left there is for browsers.
    assert read("tool of joana", address) == "joana reads this"


def test_a_view_uses_caches_as_ever(client: Client) -> None:
    for alias in ("default", "other"):
        assert visit(client, f"count?cache={alias}", view="count").text == "1 True"
        assert visit(client, f"count?cache={alias}", view="count").text == "2 True"
    assert cache.get("count") == caches["other"].get("count") == 2


def test_the_door_asks_no_more_of_the_database_than_a_browser(client: Client) -> None:
    browser = Browser()
    browser.force_login(User.objects.get(username="maria"))
    with CaptureQueriesContext(connection) as by_browser:
        browser.get("/named", secure=True)
    with CaptureQueriesContext(connection) as by_tool:
        visit(client, "named")
    assert len(by_tool) <= len(by_browser)


def test_a_name_is_compared_with_the_first_thousand() -> None:
    for number, first in ((999, "state"), (1_000, "0")):
        known = dict.fromkeys([*map(str, range(number)), "state"])
        with pytest.raises(ToolError, match=f"There is no filter “stat”.*: {first}, "):
            known_item("filter", "stat", known)
