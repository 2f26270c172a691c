from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client

from mcp_app.models import Change, Prompt, Resource, ResourceTemplate, Tool
from tests.admin.pages import fill_in, form_page, page, saved
from tests.models.recording import as_committed

pytestmark = pytest.mark.django_db

Queries = Callable[[int], AbstractContextManager[Any]]


@pytest.fixture
def rows() -> None:
    config = '{"content": [{"type": "text", "text": "a"}]}'
    for number in range(30):
        tags = "even" if number % 2 == 0 else "odd"
        Tool.objects.create(name=f"tool_{number}", tags=tags, config=config)
        Resource.objects.create(name=f"resource {number}", uri=f"x:{number}")
        ResourceTemplate.objects.create(name="t", uri_template=f"x:{number}/{{a}}")
        Prompt.objects.create(name=f"prompt_{number}")


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("model", ["tool", "resource", "resourcetemplate", "prompt"])
def test_lists_and_forms_need_few_queries(
    admin_client: Client,
    model: str,
    django_assert_max_num_queries: Queries,
) -> None:
    with django_assert_max_num_queries(6):
        response = admin_client.get(page(model))
    rows = response.context["cl"].result_list
    assert len(rows) == 30
    with django_assert_max_num_queries(6):
        response = admin_client.get(page(model, "change", rows[0].pk))
    assert response.status_code == 200


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("q=tool_1", 11),
        ("q=odd", 15),
        ("enabled__exact=0", 0),
        ("kind__exact=text", 30),
        ("kind__exact=function", 0),
    ],
)
def test_search_and_filters(admin_client: Client, query: str, count: int) -> None:
    response = admin_client.get(f"{page('tool')}?{query}")
    assert len(response.context["cl"].result_list) == count


def test_resources_are_found_by_their_address(admin_client: Client) -> None:
    Resource.objects.create(name="a", uri="shop://policy")
    ResourceTemplate.objects.create(name="a", uri_template="shop://orders/{n}")
    for model, text in (("resource", "policy"), ("resourcetemplate", "orders")):
        response = admin_client.get(f"{page(model)}?q={text}")
        assert len(response.context["cl"].result_list) == 1


def test_the_list_shows_kind_tags_and_state(admin_client: Client) -> None:
    Tool.objects.create(name="a", tags="weather", kind="function")
    text = admin_client.get(page("tool")).content.decode()
    for shown in ("Run a prepared function", "weather", "icon-yes.svg"):
        assert shown in text


def test_the_list_says_switched_on_as_the_form_does(admin_client: Client) -> None:
    Tool.objects.create(name="a", enabled=False)
    text = admin_client.get(page("tool")).content.decode()
    assert "By switched on" in text
    assert "icon-no.svg" in text


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(("action", "on"), [("switch_off", False), ("switch_on", True)])
def test_many_are_switched_at_once(
    admin_client: Client, admin_user: User, action: str, on: bool
) -> None:
    Tool.objects.update(enabled=not on)
    chosen = list(Tool.objects.values_list("pk", flat=True)[:3])
    as_committed()
    sent = {"action": action, "_selected_action": chosen}
    response = admin_client.post(page("tool"), sent, follow=True)
    assert "3 were changed." in response.content.decode()
    assert set(Tool.objects.filter(enabled=on).values_list("pk", flat=True)) == set(
        chosen
    )
    assert Change.objects.count() == 1
    assert LogEntry.objects.filter(user=admin_user).count() == 3
    assert Tool.objects.filter(updated_by=admin_user).count() == 3


def test_the_form_keeps_who_changed_it(admin_client: Client, admin_user: User) -> None:
    assert saved(fill_in(admin_client, form_page("tool"), name="a", text="a"))
    tool = Tool.objects.get()
    assert tool.updated_by == admin_user
    assert Change.objects.filter(kind="tool", ref=str(tool.pk)).count() == 1


def test_a_copy_is_saved_as_new(admin_client: Client) -> None:
    assert saved(fill_in(admin_client, form_page("tool"), name="a", text="a"))
    tool = Tool.objects.get()
    url = page("tool", "change", tool.pk)
    sent = {"name": "b", "_saveasnew": "Save as new"}
    assert saved(fill_in(admin_client, url, **sent))
    copy = Tool.objects.get(name="b")
    assert (copy.config, copy.lock_version) == (tool.config, 0)
    assert Tool.objects.get(name="a").lock_version == 0


def test_staff_who_may_only_look_see_everything_and_change_nothing(
    client: Client,
) -> None:
    user = User.objects.create_user("kim", password="x", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_tool"))
    client.force_login(user)
    tool = Tool.objects.create(name="find_orders")
    url = page("tool", "change", tool.pk)
    response = client.get(url)
    assert "find_orders" in response.content.decode()
    assert client.post(url, {"name": "b"}).status_code == 403
    listed = client.get(page("tool")).content.decode()
    assert "Switch off" not in listed
    assert client.get(page("prompt")).status_code == 403


def test_a_row_is_deleted_with_a_change(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    as_committed()
    admin_client.post(page("tool", "delete", tool.pk), {"post": "yes"})
    assert list(Change.objects.values_list("kind", "ref")) == [("tool", str(tool.pk))]
