"""The page that finds: where it leads, what it lists, and to whom."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.models import AccessToken, Prompt, Tool
from tests.admin.calls.rows import crash, write
from tests.admin.pages import Queries, Staff, page, page_of, words_of

pytestmark = pytest.mark.django_db


FIND = page("server", "find")
PASTED = "weather failed. Its error number in the log is 7F3A-29CD."


@pytest.fixture
def rows() -> dict[str, Any]:
    """Return what can be found, by what is looked for."""
    lee = User.objects.create_user("lee")
    row, _secret = AccessToken.objects.make(user=lee, name="laptop")
    (call,) = write(crash(user_name="maria"))
    weather = Tool.objects.create(name="weather")
    return {
        PASTED: page("call", "change", call.pk),
        "maria": f"{page('call')}?user=maria&when=month",
        # It is only alike, and nothing else is.
        "eath": page_of(weather),
        row.prefix[:8]: page_of(row),
    }


def answer(client: Client, text: str) -> Any:
    return client.get(FIND, {"q": text})


def shown(client: Client, text: str) -> str:
    return words_of(client, FIND, {"q": text})


def groups_of(response: Any) -> list[tuple[str, int]]:
    groups = response.context["groups"]
    return [(str(label), len(hits)) for label, hits in groups]


def test_one_thing_is_opened(admin_client: Client, rows: dict[str, str]) -> None:
    for text, url in rows.items():
        response = answer(admin_client, text)
        assert (response.status_code, response["Location"]) == (302, url), text
        assert admin_client.get(url).status_code == 200
    lines = admin_client.get(rows["maria"]).context["lines"]
    assert [line["who"] for line in lines] == ["maria"]


NOTHING = (False, False, False, False)
RIGHTS = {
    "view_call": (True, True, False, False),
    "view_tool": (False, False, True, False),
    "change_tool": (False, False, True, False),
    "manage_tokens": (False, False, False, True),
    **dict.fromkeys(("view_user", "view_prompt", "publish"), NOTHING),
}


@pytest.mark.parametrize("right", RIGHTS)
def test_each_right_alone(staff: Staff, rows: dict[str, str], right: str) -> None:
    client = staff(right, "stop")
    for (text, url), sees in zip(rows.items(), RIGHTS[right], strict=True):
        response = answer(client, text)
        if sees:
            assert response["Location"] == url
            assert client.get(url).status_code == 200
        else:
            assert f"Nothing was found for “{text}”." in shown(client, text)
            assert url not in response.content.decode()


def test_ones_own_token_needs_no_right(staff: Staff) -> None:
    client = staff("view_tool")
    kim = User.objects.get(username="kim")
    row, _secret = AccessToken.objects.make(user=kim, name="laptop")
    assert answer(client, row.prefix)["Location"] == page_of(row)


def test_several_are_listed_by_type(admin_client: Client) -> None:
    Tool.objects.create(name="weather", title="Weather")
    Prompt.objects.create(name="weather")
    Tool.objects.create(name="weather_tomorrow")
    write({"user_name": "weather"})
    response = answer(admin_client, "weather")
    people = ("Calls of a person", 1)
    assert groups_of(response) == [("tools", 2), ("prompts", 1), people]
    text = shown(admin_client, "weather")
    assert "There are at most 10 of each kind here." not in text
    for _label, hits in response.context["groups"]:
        assert all(f'href="{url}"' in text for _hit, url in hits)


def test_many_of_a_kind_hide_no_other_kind(admin_client: Client) -> None:
    for number in range(11):
        Tool.objects.create(name=f"weather_{number}")
    Prompt.objects.create(name="what_weather")
    groups = groups_of(answer(admin_client, "weather"))
    assert groups == [("tools", 10), ("prompts", 1)]
    assert "There are at most 10 of each kind here." in shown(admin_client, "weather")


def test_nothing(admin_client: Client, staff: Staff) -> None:
    text = shown(admin_client, "none")
    assert "Nothing was found for “none”. Error numbers are kept for 30 days." in text
    assert "Error numbers" not in shown(staff("view_prompt"), "none")


def test_nothing_is_looked_for(admin_client: Client) -> None:
    assert "Write what you look for." in shown(admin_client, " \0 ")


def test_what_is_looked_for_is_no_markup(admin_client: Client) -> None:
    answer_ = answer(admin_client, "<img src=x>\u202e").content.decode()
    assert "<img src=x" not in answer_
    assert "\u202e" not in answer_


def test_a_whole_token_is_not_repeated(admin_client: Client) -> None:
    user = User.objects.create_user("lee")
    row, secret = AccessToken.objects.make(user=user, name="laptop")
    # Only its beginning is real: servers log addresses, so no token belongs there.
    typed = secret[:12] + "A" * (len(secret) - 12)
    text = shown(admin_client, f"Bearer {typed}")
    assert typed[10:] not in text
    assert "What you looked for was a whole access token." in text
    assert page_of(row) in text


def test_who_may_not_look(staff: Staff, client: Client) -> None:
    assert "/login/" in answer(client, "weather")["Location"]
    # Staff of other apps.
    assert answer(staff(), "weather").status_code == 403


@pytest.mark.parametrize("count", [1, 300])
def test_any_number_of_rows_costs_the_same(
    admin_client: Client, django_assert_max_num_queries: Queries, count: int
) -> None:
    Tool.objects.bulk_create(Tool(name=f"weather{n}") for n in range(count))
    write(*({"user_name": "weather"} for _ in range(count)))
    with django_assert_max_num_queries(9):
        answer(admin_client, f"weather 7f3a29cd {'mcp_abc'}")
