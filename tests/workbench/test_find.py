"""What Find finds, and for whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoAssertNumQueries

from mcp_app.catalog.registry import mcp
from mcp_app.models import AccessToken, Prompt, Resource, ResourceTemplate, Server, Tool
from mcp_app.models.definitions import Source
from mcp_app.workbench.find import (
    MAX_HITS,
    Hit,
    error_numbers,
    find_hits,
    has_secret,
    without_secrets,
)
from mcp_app.workbench.viewer import MODELS, Viewer
from tests.admin.calls.rows import crash, write
from tests.published import published

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

EVERYTHING = Viewer(
    key=0, models=MODELS, calls=True, sessions=True, users=True, tokens=True
)


def names(text: str, viewer: Viewer = EVERYTHING) -> list[tuple[str, str]]:
    return [(hit.kind, hit.name) for hit in find_hits(viewer, text)]


@pytest.mark.parametrize(
    "text",
    [
        "7f3a29cd",
        "  7F3A29CD ",
        "7F3A-29CD",
        "7f3a 29cd",
        "7f 3a 29 cd",
        "Error: book_table failed. Its error number in the log is 7F3A29CD.",
        "The bad face: “7f3a-29cd”!",
        "bad 7f3a29cd",
    ],
)
def test_an_error_number_in_any_form(text: str) -> None:
    calls = write(crash(ago_ms=5_000), crash(), crash(failure="00000000"))
    (hit,) = [hit for hit in find_hits(EVERYTHING, text) if hit.kind == "call"]
    assert (hit.key, hit.about, hit.exact) == (str(calls[0].pk), "book_table", True)


def test_several_error_numbers() -> None:
    write(crash(), crash(failure="00000000"))
    found = names("7f3a29cd, then 0000-0000")
    assert sorted(found) == [("call", "00000000"), ("call", "7f3a29cd")]


@pytest.mark.parametrize(
    "text", ["7f3a29c", "7f3a29cde", "x7f3a29cd", "7f3a29cg", "", "deadline"]
)
def test_what_is_no_error_number(text: str) -> None:
    assert error_numbers(text) == []


def test_a_text_full_of_numbers_costs_one_statement(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    text = " ".join(f"{number:08x}" for number in range(1_000))
    assert len(error_numbers(text)) == 20
    viewer = Viewer(key=0, calls=True)
    with django_assert_num_queries(1):
        assert find_hits(viewer, text) == []


@pytest.fixture
def rows() -> dict[str, Any]:
    return {
        "tool": published(Tool(name="weather", title="Weather in a city")),
        "prompt": Prompt.objects.create(name="greet", title="Say hello"),
        "resource": Resource.objects.create(name="terms", uri="shop://terms/2026"),
        "resourcetemplate": ResourceTemplate.objects.create(
            name="order", uri_template="shop://orders/{number}"
        ),
        "server": Server.objects.create(slug="team", title="For the team"),
    }


@pytest.mark.parametrize(
    ("text", "kind", "exact"),
    [
        ("weather", "tool", True),
        ("WEATHER in a CITY", "tool", True),
        ("eather i", "tool", False),
        ("Say hello", "prompt", True),
        ("shop://terms/2026", "resource", True),
        ("terms", "resource", True),
        ("orders/{", "resourcetemplate", False),
        ("TEAM", "server", True),
    ],
)
def test_a_name_a_title_or_a_uri(
    rows: dict[str, Any], text: str, kind: str, exact: bool
) -> None:
    (hit,) = find_hits(EVERYTHING, text)
    assert (hit.kind, hit.key, hit.exact) == (kind, str(rows[kind].pk), exact)


def test_it_is_found_as_clients_still_call_it(rows: dict[str, Any]) -> None:
    tool = rows["tool"]
    tool.name = "forecast"
    tool.save()
    tool.title = "Forecast"
    tool.save()
    (hit,) = find_hits(EVERYTHING, "weather")
    assert (hit.key, hit.name, hit.exact) == (str(tool.pk), "Forecast", True)


@pytest.fixture
def in_code() -> Iterator[None]:
    @mcp.tool("find_hours", title="Opening hours")
    def find_hours() -> str:
        """Tell the hours."""
        return ""

    yield
    del mcp.tools["find_hours"]


def test_a_title_that_code_gives(in_code: None) -> None:
    row = Tool.objects.create(name="find_hours", source=Source.CODE)
    for text, exact in (("opening HOURS", True), ("opening", False)):
        assert find_hits(EVERYTHING, text) == [
            Hit("tool", str(row.pk), "Opening hours", "find_hours", exact)
        ]


def test_what_is_called_so_comes_before_what_is_like_it() -> None:
    Tool.objects.bulk_create(Tool(name=f"a_weather{n}") for n in range(MAX_HITS + 5))
    Tool.objects.create(name="weather")
    found = find_hits(EVERYTHING, "weather")
    assert len(found) == MAX_HITS
    assert [hit.name for hit in found if hit.exact] == ["weather"]
    assert found[0].name == "weather"


@pytest.mark.parametrize("text", ["%", "_", "\\", "'", '"', "\x00", "💩", "é"])
def test_characters_that_mean_something_to_databases(
    rows: dict[str, Any], text: str
) -> None:
    assert names(text) == []


def test_letters_beyond_ascii(django_user_model: type[User]) -> None:
    """SQLite lowers none of them."""
    title = "Öffnungszeiten für Ärzte"
    Tool.objects.create(name="hours", title=title)
    Tool.objects.create(name="all", title=f"Alle {title} und ÖPNV")
    for text in (title, title.lower(), title.upper()):
        (one, other) = find_hits(EVERYTHING, text)
        assert (one.name, one.exact, other.exact) == (title, True, False)
    django_user_model.objects.create_user("kim", first_name="Örjan", last_name="Ångel")
    for name in ("Örjan Ångel", "örjan ångel", "örjan"):
        assert names(name) == [("person", "kim")]


def test_a_person(django_user_model: type[User]) -> None:
    django_user_model.objects.create_user(
        "maria", "maria@example.com", first_name="Maria", last_name="Lopez"
    )
    django_user_model.objects.create_user("mariana")
    maria = Hit("person", "maria", "maria", "Maria Lopez", exact=True)
    for text in ("Maria", "maria lopez", "MARIA@example.com"):
        assert maria in find_hits(EVERYTHING, text), text
    (hit,) = find_hits(EVERYTHING, "lopez")
    assert (hit.key, hit.exact) == ("maria", False)
    assert names("maria") == [("person", "maria"), ("person", "mariana")]


def test_a_person_by_the_calls_alone() -> None:
    User.objects.create_user("maria")
    User.objects.create_user("kim")
    write({"user_name": "maria"})
    viewer = Viewer(key=0, calls=True)
    assert names("maria", viewer) == [("person", "maria")]
    # Who made no call is a user of the site, whom this person may not view.
    assert names("kim", viewer) == []
    User.objects.all().delete()
    assert names("maria") == [("person", "maria")]


def test_the_beginning_of_a_token() -> None:
    user, other = (User.objects.create_user(name) for name in ("kim", "lee"))
    row, secret = AccessToken.objects.make(user=user, name="laptop")
    AccessToken.objects.make(user=other, name="other")
    said = f"{row.prefix}…"
    own = Viewer(key=user.pk)
    logged = f"mcp_app.transports WARNING mcp_app_x: {row.prefix}"
    for text in (row.prefix, row.prefix[:8], f"the {said} of kim", secret, logged):
        assert names(text, own) == [("accesstoken", f"laptop ({said})")], text
        assert names(text) == [("accesstoken", f"laptop ({said})")], text
        assert names(text, Viewer(key=other.pk)) == []
    assert names(row.prefix.swapcase()[:4] + row.prefix[4:]) == []
    assert names("mcp_" + row.prefix[4:].swapcase(), own) == []


def test_a_whole_token_is_not_shown_again() -> None:
    user = User.objects.create_user("kim")
    _row, secret = AccessToken.objects.make(user=user, name="laptop")
    text = f"Bearer {secret} fails"
    assert without_secrets(text) == f"Bearer {secret[:10]}… fails"
    assert has_secret(text)
    assert not has_secret(f"{secret[:10]} and mcp_a_tool_with_a_rather_long_name")


@pytest.mark.parametrize("text", ["weather", "maria", "7f3a29cd", "mcp_9fK2"])
def test_who_may_view_nothing_finds_nothing(
    rows: dict[str, Any],
    text: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    user = User.objects.create_user("maria")
    row, _secret = AccessToken.objects.make(user=user, name="laptop")
    AccessToken.objects.filter(pk=row.pk).update(prefix="mcp_9fK2xx")
    write(crash(user_name="maria"))
    assert names(text)
    with django_assert_max_num_queries(1):
        assert find_hits(Viewer(key=0), text) == []
