"""The page *Who can see it*: numbers, people, why, and the check of one person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from html import unescape
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.interface.principal import AccessRequest, Rule
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Stop, Tool
from mcp_app.models.stops import By, Scope
from tests.admin.pages import page
from tests.marks import long_cases
from tests.published import published

pytestmark = pytest.mark.django_db

Queries = Callable[[int], AbstractContextManager[Any]]
BUDGET = 13
"""With the strip that says what is stopped, and who may stop."""
OBJECTS = Rule("shop.view_order of order", lambda asked: True, True, True)
CHECKING = 16
"""The page, and what a person's user, groups and permissions take."""


def tool(**columns: Any) -> Tool:
    return published(Tool(name="refund", title="Refund", **columns))


@pytest.fixture(autouse=True)
def server() -> Server:
    row = Server.objects.get()
    row.access = "token"
    row.title = "Shop"
    row.save()
    return published(row)


def permission() -> Permission:
    return Permission.objects.get(
        codename="view_session", content_type__app_label="mcp_app"
    )


@pytest.fixture
def support() -> Group:
    """Three in Support, who may view orders: one of them inactive."""
    group = Group.objects.create(name="Support")
    group.permissions.add(permission())
    for name, active in (("ana", True), ("ben", True), ("gone", False)):
        made = User.objects.create_user(name, is_active=active)
        made.groups.add(group)
    User.objects.create_user("zoe")
    return group


@pytest.fixture
def rule() -> Iterator[str]:
    @mcp.rule("shop.can_refund")
    def can_refund(asked: AccessRequest) -> bool:
        return asked.user is not None and asked.user.username == "ana"

    yield "shop.can_refund"
    del mcp.rules["shop.can_refund"]


def look(client: Client, row: Any, **query: Any) -> Any:
    url = page(row.kind_of_row, "who", row.pk)
    response = client.get(url, query)
    assert response.status_code == 200
    return response


def text_of(response: Any) -> str:
    bare = re.sub(r"<[^>]+>", " ", response.content.decode())
    return re.sub(r"\s+", " ", unescape(bare))


def why(response: Any) -> dict[str, str]:
    return {each.name: each.why for each in response.context["people"].shown}


def counts(response: Any) -> list[str]:
    return [step.count for step in response.context["steps"]]


PERMISSION = "mcp_app.view_session"


# -- numbers ------------------------------------------------------------------------


def test_how_many_and_why(admin_client: Client, support: Group) -> None:
    row = tool(permission=PERMISSION, groups="Support")
    seen = look(admin_client, row)
    assert (
        "3 people can list and call this tool: everyone in Support with"
        " mcp_app.view_session, and 1 superuser. Anonymous callers cannot: the server"
        " requires a token." in text_of(seen)
    )
    assert counts(seen) == ["4", "4", "4", "4", "3", "3"]
    assert [step.label for step in seen.context["steps"]] == [
        "People who may log in",
        "Published",
        "Offered by the server “Shop”",
        "The server requires authentication (token)",
        "Permission mcp_app.view_session",
        "Group Support",
    ]
    assert why(seen) == {
        "admin": "superuser",
        "ana": "in Support, which has mcp_app.view_session",
        "ben": "in Support, which has mcp_app.view_session",
    }
    cannot = look(admin_client, row, show="cannot")
    assert why(cannot) == {
        "gone": "cannot: may not log in",
        "zoe": "cannot: lacks mcp_app.view_session and not in Support",
    }
    assert "cannot (2)" in text_of(cannot)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Tool(name="a"), "list and call this tool"),
        (Resource(name="a", uri="a://b"), "list and read this resource"),
        (
            ResourceTemplate(name="a", uri_template="a://{b}"),
            "list and read what this template shows",
        ),
        (Prompt(name="a"), "list and use this prompt"),
    ],
)
def test_every_kind_has_its_sentence(
    admin_client: Client, make: Any, said: str
) -> None:
    make.pk = None
    text = text_of(look(admin_client, published(make)))
    assert f"1 person can {said}: everyone who may log in at this site." in text


def test_a_server_has_the_page(
    admin_client: Client, server: Server, support: Group
) -> None:
    server.groups = "Support"
    server.save()
    seen = look(admin_client, server)
    assert "3 people can use this server: everyone in Support, and 1 superuser." in (
        text_of(seen)
    )
    assert counts(seen) == ["4", "4", "4", "3"]
    row = tool()
    labels = [step.label for step in look(admin_client, row).context["steps"]]
    assert labels[-1] == "Required by the server: group Support"


def test_each_of_several_servers_has_its_numbers(
    admin_client: Client, support: Group
) -> None:
    published(Server(slug="desk", access="token", groups="Support"))
    published(Server(slug="apart", access="token", selection="tags", tags="b"))
    row = tool()
    seen = look(admin_client, row)
    assert [each.slug for each in seen.context["seen"].servers] == [
        "default",
        "desk",
        "apart",
    ]
    assert "4 people can" in text_of(seen)
    assert "3 people can" in text_of(look(admin_client, row, server="desk"))
    apart = text_of(look(admin_client, row, server="apart"))
    assert (
        "Nobody can list and call this tool. The server"
        " “apart” does not offer this definition." in apart
    )
    assert "Give this definition a tag of the server (b), and publish it." in apart


@pytest.mark.parametrize(
    ("columns", "said", "change"),
    [
        ({"access": ""}, "The server lets nobody in.", "Fill in “Who may come in”"),
        ({"access": "gone"}, "has no authentication method “gone”", ""),
    ],
)
def test_a_server_that_lets_nobody_in(
    admin_client: Client,
    server: Server,
    columns: dict[str, Any],
    said: str,
    change: str,
) -> None:
    Server.objects.filter(pk=server.pk).update(**columns)
    seen = look(admin_client, tool())
    text = text_of(seen).replace("the settings have", "has")
    assert "Nobody can list and call this tool." in text
    assert said in text
    assert change in text
    assert "people" not in seen.context
    assert "Anonymous" not in text


def test_what_clients_do_not_see_nobody_sees(admin_client: Client) -> None:
    row = Tool.objects.create(name="draft", permission=PERMISSION)
    seen = look(admin_client, row)
    assert "Nobody can list and call this tool. It is not published." in text_of(seen)
    assert counts(seen) == ["1", "0", "0", "0", "0"]
    Server.objects.all().delete()
    seen = look(admin_client, tool_named("other"))
    assert "There is no published server." in text_of(seen)


def tool_named(name: str, **columns: Any) -> Tool:
    return published(Tool(name=name, **columns))


@pytest.mark.parametrize("scope", list(Scope))
def test_what_is_stopped_nobody_sees(
    admin_client: Client, server: Server, scope: Scope
) -> None:
    """A tool that only reads goes on where changes are stopped."""
    changes, reads = tool(), published(Tool(name="look", read_only=True))
    rows: dict[Scope, Any] = {Scope.SERVER: server, Scope.DEFINITION: changes}
    stop = Stop.objects.make(scope, rows.get(scope), by=By(name="lee"))
    assert "by lee" in text_of(look(admin_client, changes))
    shown = text_of(look(admin_client, reads))
    assert ("Nobody" in shown) is (scope in (Scope.EVERYTHING, Scope.SERVER))
    Stop.objects.end([stop.pk], by=By(name="lee"))
    assert "by lee" not in text_of(look(admin_client, changes))


def test_a_working_copy_that_asks_for_something_else(
    admin_client: Client, support: Group
) -> None:
    row = tool(groups="Support")
    differs = "The working copy requires something else"
    assert differs not in text_of(look(admin_client, row))
    row.title = "Another"
    row.save()
    assert differs not in text_of(look(admin_client, row))
    row.groups = ""
    row.save()
    text = text_of(look(admin_client, row))
    assert "everyone in Support" in text
    assert differs in text


def test_what_code_asks_for_comes_first(admin_client: Client, support: Group) -> None:
    @mcp.tool("from_code", permission=PERMISSION)
    def from_code() -> str:
        return ""

    try:
        row = Tool.objects.create(name="from_code", kind="function", source="code")
        assert "everyone with mcp_app.view_session" in text_of(look(admin_client, row))
        row.groups = "Support"
        published(row)
        text = text_of(look(admin_client, row))
        assert "everyone in Support with mcp_app.view_session" in text
    finally:
        del mcp.tools["from_code"]
    assert "Broken" in text_of(look(admin_client, row))


# -- what cannot be counted ---------------------------------------------------------


def test_a_rule_in_code_is_asked_person_by_person(
    admin_client: Client, support: Group, rule: str
) -> None:
    row = tool(groups="Support", rule=rule)
    seen = look(admin_client, row)
    text = text_of(seen)
    assert "At most 3 people can list and call this tool" in text
    assert (
        f"This rule is written in code ({__name__}.rule.<locals>.can_refund),"
        " so it can only be checked for one person at a time." in text
    )
    assert counts(seen)[-1] == "at most 3"
    assert why(seen)["ana"] == "in Support; the rest must be checked"
    ana = look(admin_client, row, person="ana")
    assert ana.context["verdict"] == "ana can list and call this tool."
    admin = look(admin_client, row, person="admin")
    assert admin.context["verdict"] == "admin cannot list and call this tool."
    (failed,) = [step for step in admin.context["checks"] if step.look == "no"]
    assert failed.change.startswith(
        "To change this, change the code of tests.admin.publishing.test_who_can_see"
    )


def test_a_rule_that_code_lacks_lets_nobody_in(admin_client: Client) -> None:
    seen = look(admin_client, tool(rule="shop.unheard_of"))
    text = text_of(seen)
    assert "Nobody can list and call this tool." in text
    assert "The code has no rule “shop.unheard_of”, so nobody is let in." in text
    assert why(look(admin_client, tool_named("b", rule="x"), show="cannot")) == {
        "admin": "cannot: the rule x says no"
    }


def test_a_group_that_does_not_exist(admin_client: Client, support: Group) -> None:
    text = text_of(look(admin_client, tool(groups="support")))
    assert "There is no group “support”." in text
    assert "1 person can" in text


class Asking:
    """A backend that says of each user, and cannot list them."""

    def authenticate(self, request: Any, **credentials: Any) -> None:
        """Let nobody log in."""

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return bool(user.username == "zoe")


class Silent:
    """A backend that only lets people log in."""

    def authenticate(self, request: Any, **credentials: Any) -> None:
        """Let nobody log in."""


class Listing(Asking):
    """A backend that can list them, too."""

    def with_perm(self, permission: str, **options: Any) -> Any:
        return User.objects.filter(username="zoe")


class Stricter(Listing):
    """A backend that says something else than what it lists."""

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return False


def _with_backend(settings: LazySettings, name: str) -> None:
    model = "django.contrib.auth.backends.ModelBackend"
    settings.AUTHENTICATION_BACKENDS = [model, f"{__name__}.{name}"]


@pytest.mark.parametrize("name", ["Asking", "Stricter"])
def test_a_backend_that_cannot_list_is_asked_person_by_person(
    admin_client: Client, support: Group, settings: LazySettings, name: str
) -> None:
    _with_backend(settings, name)
    admin_client.force_login(User.objects.get(username="admin"), MODEL_BACKEND)
    row = tool(permission=PERMISSION)
    text = text_of(look(admin_client, row))
    assert "At most 4 people can" in text
    assert (
        f"The authentication backend {__name__}.{name} does not list who has the"
        " permission, so this condition can only be checked for one person at a time."
        in text
    )
    zoe = look(admin_client, row, person="zoe")
    assert zoe.context["admitted"] is (name == "Asking")


MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.mark.parametrize(("name", "number"), [("Silent", 3), ("Listing", 4)])
def test_several_backends_that_list(
    admin_client: Client,
    support: Group,
    settings: LazySettings,
    name: str,
    number: int,
) -> None:
    _with_backend(settings, name)
    admin_client.force_login(User.objects.get(username="admin"), MODEL_BACKEND)
    seen = look(admin_client, tool(permission=PERMISSION))
    assert f"{number} people can" in text_of(seen)
    if number == 4:
        assert why(seen)["zoe"] == "has mcp_app.view_session"


def test_permissions_for_single_objects_are_said_as_such(
    admin_client: Client,
) -> None:
    mcp.rules["shop.view_order of order"] = OBJECTS
    try:
        row = ResourceTemplate(
            name="order", uri_template="order://{pk}", rule="shop.view_order of order"
        )
        seen = look(admin_client, published(row))
    finally:
        del mcp.rules["shop.view_order of order"]
    text = text_of(seen)
    assert "1 person can list and read what this template shows" in text
    assert "is checked for each resource" in text


# -- public servers -----------------------------------------------------------------


def test_a_public_server_asks_nobody(admin_client: Client, server: Server) -> None:
    server.access = "public"
    server.save()
    seen = look(admin_client, tool())
    assert (
        "Anyone on the internet can list and call this tool. The server is public:"
        " anyone may use it without signing in." in text_of(seen)
    )
    assert "people" not in seen.context
    closed = look(admin_client, tool_named("b", permission=PERMISSION))
    text = text_of(closed)
    assert "Nobody can list and call this tool. The server is public" in text
    assert closed.context["steps"][-1].look == "no"


# -- one person ---------------------------------------------------------------------


def test_what_would_change_it(admin_client: Client, support: Group) -> None:
    row = tool(permission=PERMISSION, groups="Support")
    seen = look(admin_client, row, person="zoe")
    assert seen.context["verdict"] == "zoe cannot list and call this tool."
    assert [(step.label, step.look) for step in seen.context["checks"]] == [
        ("Published", "yes"),
        ("Offered by the server “Shop”", "yes"),
        ("The server requires authentication (token)", "yes"),
        ("May log in", "yes"),
        ("Permission mcp_app.view_session", "no"),
        ("Group Support", "no"),
    ]
    text = text_of(seen)
    assert (
        "Give the user, or a group that the user is in, the permission"
        " mcp_app.view_session." in text
    )
    assert "Put the user into the group Support." in text
    gone = look(admin_client, row, person="gone")
    assert gone.context["checks"][-1].change.startswith("Make the user active.")
    assert not gone.context["admitted"]
    hidden = look(admin_client, row, person="a\0b")
    assert hidden.context["missing"] == "There is no user “a⟦U+0000⟧b”."
    unknown = look(admin_client, row, person="<b>x</b>")
    assert unknown.context["missing"] == "There is no user “<b>x</b>”."
    assert "<b>x</b>" not in unknown.content.decode()


# -- rights and costs ---------------------------------------------------------------


def test_who_may_not_view_it_is_refused(
    staff: Callable[..., Client], client: Client
) -> None:
    row = tool()
    url = page("tool", "who", row.pk)
    assert client.get(url).status_code == 302
    assert staff("view_prompt").get(url).status_code == 403


def test_names_need_the_right_to_view_users(
    staff: Callable[..., Client], support: Group
) -> None:
    row = tool(groups="Support")
    client = staff("view_tool")
    for query in ({}, {"person": "ana"}, {"show": "cannot"}):
        text = text_of(look(client, row, **query))
        assert "2 people can" in text
        assert "Support" in text
        assert " ana" not in text
        assert "Check one person" not in text
        assert "You see numbers and groups only." in text
    User.objects.get(username="kim").user_permissions.add(
        Permission.objects.get(codename="view_user")
    )
    assert " ana " in text_of(look(client, row))


@pytest.mark.parametrize("many", [0, 150, *long_cases(2_000)])
def test_any_number_of_people_costs_the_same(
    staff: Callable[..., Client],
    support: Group,
    django_assert_max_num_queries: Queries,
    many: int,
) -> None:
    User.objects.bulk_create(User(username=f"user{n:04}") for n in range(many))
    support.user_set.add(*User.objects.filter(username__startswith="user"))
    client = staff("view_tool", "view_user")
    row = tool(permission=PERMISSION, groups="Support")
    with django_assert_max_num_queries(BUDGET):
        seen = look(client, row)
    assert f"{many + 2:,} people can" in text_of(seen)
    with django_assert_max_num_queries(BUDGET):
        look(client, row, show="cannot")
    with django_assert_max_num_queries(CHECKING):
        assert look(client, row, person="ana").context["admitted"]
    if many:
        last = look(client, row, page="999999")
        assert len(last.context["people"].shown) == 2
        pages = many // 50 + 1
        assert f"Page {pages} of {pages}" in text_of(last)


# -- before it is published ---------------------------------------------------------


def test_publishing_says_how_many_that_is(
    admin_client: Client, support: Group, django_assert_max_num_queries: Queries
) -> None:
    row = Tool.objects.create(name="refund", title="Refund")
    url = page("tool", "publish", row.pk)
    assert (
        "No permission is required: everyone whom a server lets in can use it."
        in text_of(admin_client.get(url))
    )
    row.groups = "Support"
    row.save()
    said = "People who have the required rights:"
    assert f"{said} 3." in text_of(admin_client.get(url))
    published(row)
    assert f"{said} 3. Publishing does not change this number." in text_of(
        admin_client.get(url)
    )
    row.groups = ""
    row.save()
    with django_assert_max_num_queries(15):
        text = text_of(admin_client.get(url))
    assert f"{said} 3 now, 4 once this is published." in text
    server = Server.objects.get()
    assert said not in text_of(admin_client.get(page("server", "publish", server.pk)))
