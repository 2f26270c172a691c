from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from mcp_app.models import (
    Change,
    Prompt,
    Resource,
    ResourceTemplate,
    Server,
    Stop,
    Tool,
)
from mcp_app.models.stops import By, is_stopped
from tests.admin.pages import (
    Queries,
    Staff,
    add,
    fill_in,
    page,
    page_of,
    saved,
    text_after,
    text_of,
)
from tests.models.recording import as_committed
from tests.published import published, stopped

pytestmark = pytest.mark.django_db


def names_in(client: Client, query: str, model: str = "tool") -> list[str]:
    """Return the names of the rows in a list."""
    response = client.get(f"{page(model)}?{query}")
    return [row.name for row in response.context["cl"].result_list]


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
    admin_client: Client, model: str, django_assert_max_num_queries: Queries
) -> None:
    # Django asks for it once in a process.
    ContentType.objects.get_for_model(apps.get_model("mcp_app", model))
    with django_assert_max_num_queries(7):
        response = admin_client.get(page(model))
    rows = response.context["cl"].result_list
    assert len(rows) == 30
    with django_assert_max_num_queries(8):
        assert admin_client.get(page_of(rows[0])).status_code == 200


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(("query", "count"), [("tool_1", 11), ("odd", 15)])
def test_search(admin_client: Client, query: str, count: int) -> None:
    assert len(names_in(admin_client, f"q={query}")) == count


def test_resources_are_found_by_their_address(admin_client: Client) -> None:
    Resource.objects.create(name="a", uri="shop://policy")
    ResourceTemplate.objects.create(name="a", uri_template="shop://orders/{n}")
    assert names_in(admin_client, "q=policy", "resource") == ["a"]
    assert names_in(admin_client, "q=orders", "resourcetemplate") == ["a"]


def test_the_list_shows_name_kind_state_and_problems(admin_client: Client) -> None:
    row = Tool.objects.create(name="a", title="An <i>a</i>", kind="function")
    Tool.objects.filter(pk=row.pk).update(to_fix=1, advices=2, tokens=148)
    text = text_of(admin_client, page("tool"))
    for shown in (
        "An &lt;i&gt;a&lt;/i&gt;",
        "<code>a</code> · Run a prepared function",
        "Not published",
        "1 to fix, 2 pieces of advice",
        "≈ 148",
    ):
        assert shown in text


ALL = {"new", "live", "edited", "off", "gone", "code"}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("state=unpublished", {"new"}),
        ("state=published", {"live", "code"}),
        ("state=changed", {"edited"}),
        ("state=stopped", {"off"}),
        ("behind=text", {"new", "live", "edited", "off"}),
        ("behind=function", {"gone", "code"}),
        ("state=broken", {"gone"}),
        ("state=nonsense", ALL),
        ("source__exact=code", {"gone", "code"}),
        ("changes=reads", {"live"}),
        ("changes=deletes", {"off"}),
        ("changes=unsaid", ALL - {"live", "off"}),
        ("server=tagged", {"live"}),
        ("server=chosen", {"off"}),
        ("server=default", ALL),
    ],
)
def test_filters(admin_client: Client, query: str, names: set[str]) -> None:
    Tool.objects.create(name="new", tags="saleswoman a")
    published(Tool(name="live", read_only=True, tags="a,sale"))
    off = stopped(published(Tool(name="off", destructive=True)))
    edited = published(Tool(name="edited"))
    edited.title = "Edited"
    edited.save()
    Tool.objects.create(name="code", kind="function", source="code")
    Tool.objects.create(name="gone", kind="function", source="code", broken="Gone.")
    Server.objects.create(slug="tagged", selection="tags", tags="sale x")
    chosen = Server.objects.create(slug="chosen", selection="chosen")
    chosen.tools.add(off)
    assert {*names_in(admin_client, query)} == names


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize(
    ("action", "on", "said"),
    [("stop_chosen", False, "stopped"), ("start_chosen", True, "started")],
)
def test_many_are_stopped_and_started_at_once(
    admin_client: Client, admin_user: User, action: str, on: bool, said: str
) -> None:
    if on:
        Stop.objects.make_many(Tool.objects.all(), by=By("lee"))
    chosen = list(Tool.objects.values_list("pk", flat=True)[:3])
    as_committed()
    sent = {"action": action, "_selected_action": chosen}
    if on:
        asked = admin_client.post(page("tool"), sent)
        assert all(f'value="{key}" checked' in asked.content.decode() for key in chosen)
        assert not Tool.objects.filter(~is_stopped(Tool)).exists()
        sent["confirmed"] = "yes"
    assert f"3 were {said}." in text_after(admin_client, page("tool"), sent)
    held = is_stopped(Tool)
    rows = Tool.objects.filter(~held if on else held)
    assert set(rows.values_list("pk", flat=True)) == set(chosen)
    assert Change.objects.count() == 1
    assert LogEntry.objects.filter(user=admin_user).count() == 3


def test_the_form_keeps_who_changed_it(admin_client: Client, admin_user: User) -> None:
    tool = add(admin_client, Tool, name="a", text="a")
    assert tool.updated_by == admin_user
    assert not Change.objects.exists()
    assert tool.to_fix == 2


def test_a_copy_is_saved_as_new(admin_client: Client) -> None:
    tool = add(admin_client, Tool, name="a", text="a")
    sent = {"name": "b", "_saveasnew": "Save as new"}
    assert saved(fill_in(admin_client, page_of(tool), **sent))
    copy = Tool.objects.get(name="b")
    assert (copy.config, copy.lock_version) == (tool.config, 0)
    assert Tool.objects.get(name="a").lock_version == 0


def test_staff_who_may_only_look_see_everything_and_change_nothing(
    staff: Staff,
) -> None:
    client, url = staff("view_tool"), page_of(Tool.objects.create(name="find_orders"))
    text = text_of(client, url)
    assert "find_orders" in text
    assert "_save" not in text
    assert client.post(url, {"name": "b"}).status_code == 403
    assert "Switch off" not in text_of(client, page("tool"))
    assert client.get(page("prompt")).status_code == 403


def test_a_row_is_deleted_with_a_change(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    as_committed()
    admin_client.post(page("tool", "delete", tool.pk), {"post": "yes"})
    assert list(Change.objects.values_list("kind", "ref")) == [("tool", str(tool.pk))]


@pytest.mark.parametrize("model", ["tool", "prompt", "server"])
def test_a_page_names_its_history_once(admin_client: Client, model: str) -> None:
    rows = apps.get_model("mcp_app", model).objects
    row = rows.first() or rows.create(name="a")
    assert text_of(admin_client, row).count("/history/") == 1
