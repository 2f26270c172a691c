"""The definitions that need care, on the home page."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.test import Client

from mcp_app.admin.home import attention
from mcp_app.models import Prompt, Resource, ResourceTemplate, Tool
from tests.admin.home.pages import home
from tests.admin.page.test_broken_rows import REASON, working
from tests.published import published, stopped

pytestmark = [pytest.mark.databases, pytest.mark.django_db]

Queries = Callable[[int], AbstractContextManager[Any]]


def told(client: Client) -> list[tuple[str, str, str]]:
    return [
        (each.state.value, each.name, each.sentence)
        for each in home(client).context["concerns"]
    ]


def test_the_worst_comes_first(admin_client: Client) -> None:
    published(Tool(name="fine", title="Fine"))
    Prompt.objects.create(name="draft", title="Draft")
    changed = published(Resource(name="terms", title="Terms", uri="shop://terms"))
    changed.title = "New terms"
    changed.save()
    working("one", published(Tool(name="stock", title="Stock")))
    gone = published(ResourceTemplate(name="order", uri_template="shop://{a}"))
    ResourceTemplate.objects.filter(pk=gone.pk).update(broken="Gone.")
    stopped(published(Tool(name="off", title="Off")))
    assert told(admin_client) == [
        ("broken", "order", "Gone."),
        ("broken", "Stock", REASON),
        (
            "changed",
            "New terms",
            "The working copy differs from what clients see.",
        ),
        ("unpublished", "Draft", "Clients do not see it."),
    ]


def test_only_what_one_may_view(staff: Callable[..., Client]) -> None:
    Prompt.objects.create(name="draft")
    Tool.objects.create(name="plan")
    client = staff("view_prompt")
    assert [name for _state, name, _said in told(client)] == ["draft"]
    client.logout()


def test_without_any_permission_there_is_nothing(staff: Callable[..., Client]) -> None:
    Prompt.objects.create(name="draft")
    assert told(staff("view_call")) == []


def test_more_than_the_page_names(admin_client: Client) -> None:
    Tool.objects.bulk_create(Tool(name=f"t{n}") for n in range(attention.MOST + 1))
    response = home(admin_client)
    assert len(response.context["concerns"]) == attention.MOST
    assert "There are more" in response.content.decode()


@pytest.mark.parametrize("count", [1, 300])
@pytest.mark.parametrize("rights", [("publish",), ()])
def test_any_number_of_rows_costs_the_same(
    staff: Callable[..., Client],
    django_assert_max_num_queries: Queries,
    count: int,
    rights: tuple[str, ...],
) -> None:
    Tool.objects.bulk_create(Tool(name=f"n{n}") for n in range(count))
    Prompt.objects.bulk_create(Prompt(name=f"n{n}") for n in range(count))
    views = ("tool", "prompt", "resource", "resourcetemplate", "server", "call")
    client = staff("add_tool", *(f"view_{each}" for each in views), *rights)
    with django_assert_max_num_queries(15):
        home(client)
