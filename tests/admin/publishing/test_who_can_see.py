"""The page *Who can see it*: numbers, people, why, and the check of one person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.interface.principal import AccessRequest, Rule
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Stop, Tool
from mcp_app.models.stops import By, Scope
from tests.admin.pages import Queries, Staff, grant, page_of, words_in
from tests.marks import long_cases
from tests.published import published

pytestmark = pytest.mark.django_db

BUDGET = 13
"""With the strip that says what is stopped, and who may stop."""
CHECKING = 16
"""The page, and what a person's user, groups and permissions take."""


def tool(**columns: Any) -> Tool:
    return published(Tool(name="refund", title="Refund", **columns))


@pytest.fixture(autouse=True)
def server() -> Server:
    Server.objects.update(access="token", title="Shop")
    return published(Server.objects.get())


@pytest.fixture
def support() -> Group:
    """Three in Support, who may view orders: one of them inactive."""
    group = Group.objects.create(name="Support")
    ours = Permission.objects.filter(content_type__app_label="mcp_app")
    group.permissions.add(ours.get(codename="view_session"))
    for name, active in (("ana", True), ("ben", True), ("gone", False)):
        group.user_set.add(User.objects.create_user(name, is_active=active))
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
    response = client.get(page_of(row, "who"), query)
    assert response.status_code == 200
    return response


def why(response: Any) -> dict[str, str]:
    shown = response.context["people"]["shown"]
    return {each["name"]: each["why"] for each in shown}


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
        " requires a token." in words_in(seen)
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
    assert "cannot (2)" in words_in(cannot)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Tool(), "list and call this tool"),
        (Resource(uri="a://b"), "list and read this resource"),
        (
            ResourceTemplate(uri_template="{b}"),
            "list and read what this template shows",
        ),
        (Prompt(), "list and use this prompt"),
    ],
)
def test_every_kind_has_its_sentence(
    admin_client: Client, make: Any, said: str
) -> None:
    make.pk, make.name = None, "a"
    text = words_in(look(admin_client, published(make)))
    assert f"1 person can {said}: everyone who may log in at this site." in text


def test_a_server_has_the_page(
    admin_client: Client, server: Server, support: Group
) -> None:
    server.groups = "Support"
    server.save()
    seen = look(admin_client, server)
    said = "3 people can use this server: everyone in Support, and 1 superuser."
    assert said in words_in(seen)
    assert counts(seen) == ["4", "4", "4", "3"]
    labels = [step.label for step in look(admin_client, tool()).context["steps"]]
    assert labels[-1] == "Required by the server: group Support"


def test_each_of_several_servers_has_its_numbers(
    admin_client: Client, support: Group
) -> None:
    published(Server(slug="desk", access="token", groups="Support"))
    published(Server(slug="apart", access="token", selection="tags", tags="b"))
    row = tool()
    seen = look(admin_client, row)
    slugs = [each.slug for each in seen.context["seen"].servers]
    assert slugs == ["default", "desk", "apart"]
    assert "4 people can" in words_in(seen)
    assert "3 people can" in words_in(look(admin_client, row, server="desk"))
    apart = words_in(look(admin_client, row, server="apart"))
    assert (
        "Nobody can list and call this tool. The server"
        " “apart” does not offer this definition." in apart
    )
    assert "Give this definition a tag of the server (b), and publish it." in apart


@pytest.mark.parametrize(
    ("access", "said", "change"),
    [
        ("", "The server lets nobody in.", "Fill in “Who may come in”"),
        ("gone", "has no authentication method “gone”", ""),
    ],
)
def test_a_server_that_lets_nobody_in(
    admin_client: Client, access: str, said: str, change: str
) -> None:
    Server.objects.update(access=access)
    seen = look(admin_client, tool())
    text = words_in(seen).replace("the settings have", "has")
    assert "Nobody can list and call this tool." in text
    assert said in text
    assert change in text
    assert "people" not in seen.context
    assert "Anonymous" not in text


def test_what_clients_do_not_see_nobody_sees(admin_client: Client) -> None:
    row = Tool.objects.create(name="draft", permission=PERMISSION)
    seen = look(admin_client, row)
    assert "Nobody can list and call this tool. It is not published." in words_in(seen)
    assert counts(seen) == ["1", "0", "0", "0", "0"]
    Server.objects.all().delete()
    seen = look(admin_client, tool_named("other"))
    assert "There is no published server." in words_in(seen)


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
    assert "by lee" in words_in(look(admin_client, changes))
    shown = words_in(look(admin_client, reads))
    assert ("Nobody" in shown) is (scope in (Scope.EVERYTHING, Scope.SERVER))
    Stop.objects.end([stop.pk], by=By(name="lee"))
    assert "by lee" not in words_in(look(admin_client, changes))


def test_a_working_copy_that_asks_for_something_else(
    admin_client: Client, support: Group
) -> None:
    row = tool(groups="Support")
    differs = "The working copy requires something else"
    assert differs not in words_in(look(admin_client, row))
    row.title = "Another"
    row.save()
    assert differs not in words_in(look(admin_client, row))
    row.groups = ""
    row.save()
    text = words_in(look(admin_client, row))
    assert "everyone in Support" in text
    assert differs in text


def test_what_code_asks_for_comes_first(admin_client: Client, support: Group) -> None:
    @mcp.tool("from_code", permission=PERMISSION)
    def from_code() -> str:
        return ""

    try:
        row = Tool.objects.create(name="from_code", kind="function", source="code")
        assert "everyone with mcp_app.view_session" in words_in(look(admin_client, row))
        row.groups = "Support"
        published(row)
        text = words_in(look(admin_client, row))
        assert "everyone in Support with mcp_app.view_session" in text
    finally:
        del mcp.tools["from_code"]
    assert "Broken" in words_in(look(admin_client, row))


# -- what cannot be counted ---------------------------------------------------------


def test_a_rule_in_code_is_asked_person_by_person(
    admin_client: Client, support: Group, rule: str
) -> None:
    row = tool(groups="Support", rule=rule)
    seen = look(admin_client, row)
    text = words_in(seen)
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
    code = "tests.admin.publishing.test_who_can_see"
    assert failed.change.startswith(f"To change this, change the code of {code}")


def test_a_rule_that_code_lacks_lets_nobody_in(admin_client: Client) -> None:
    text = words_in(look(admin_client, tool(rule="shop.unheard_of")))
    assert "Nobody can list and call this tool." in text
    assert "The code has no rule “shop.unheard_of”, so nobody is let in." in text
    other = look(admin_client, tool_named("b", rule="x"), show="cannot")
    assert why(other) == {"admin": "cannot: the rule x says no"}


def test_a_group_that_does_not_exist(admin_client: Client, support: Group) -> None:
    text = words_in(look(admin_client, tool(groups="support")))
    assert "There is no group “support”." in text
    assert "1 person can" in text


class Silent:
    """A backend that only lets people log in."""

    def authenticate(self, request: Any, **credentials: Any) -> None:
        """Let nobody log in."""


class Asking(Silent):
    """A backend that says of each user, and cannot list them."""

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return bool(user.username == "zoe")


class Listing(Asking):
    """A backend that can list them, too."""

    def with_perm(self, permission: str, **options: Any) -> Any:
        return User.objects.filter(username="zoe")


class Stricter(Listing):
    """A backend that says something else than what it lists."""

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return False


MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"


@pytest.fixture
def asked(settings: LazySettings, admin_client: Client, name: str) -> Client:
    """Somebody who has logged in where there is a backend of that name, too."""
    settings.AUTHENTICATION_BACKENDS = [MODEL_BACKEND, f"{__name__}.{name}"]
    admin_client.force_login(User.objects.get(username="admin"), MODEL_BACKEND)
    return admin_client


@pytest.mark.parametrize("name", ["Asking", "Stricter"])
def test_a_backend_that_cannot_list_is_asked_person_by_person(
    asked: Client, support: Group, name: str
) -> None:
    row = tool(permission=PERMISSION)
    text = words_in(look(asked, row))
    assert "At most 4 people can" in text
    assert (
        f"The authentication backend {__name__}.{name} does not list who has the"
        " permission, so this condition can only be checked for one person at a time."
        in text
    )
    zoe = look(asked, row, person="zoe")
    assert zoe.context["admitted"] is (name == "Asking")


@pytest.mark.parametrize(("name", "number"), [("Silent", 3), ("Listing", 4)])
def test_several_backends_that_list(asked: Client, support: Group, number: int) -> None:
    seen = look(asked, tool(permission=PERMISSION))
    assert f"{number} people can" in words_in(seen)
    if number == 4:
        assert why(seen)["zoe"] == "has mcp_app.view_session"


def test_permissions_for_single_objects_are_said_as_such(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "shop.view_order of order"
    monkeypatch.setitem(mcp.rules, rule, Rule(rule, lambda asked: True, True, True))
    row = ResourceTemplate(name="order", uri_template="order://{pk}", rule=rule)
    text = words_in(look(admin_client, published(row)))
    assert "1 person can list and read what this template shows" in text
    assert "is checked for each resource" in text


# -- public servers -----------------------------------------------------------------


def test_a_public_server_asks_nobody(admin_client: Client, server: Server) -> None:
    server.access = "public"
    server.save()
    seen = look(admin_client, tool())
    assert (
        "Anyone on the internet can list and call this tool. The server is public:"
        " anyone may use it without signing in." in words_in(seen)
    )
    assert "people" not in seen.context
    closed = look(admin_client, tool_named("b", permission=PERMISSION))
    nobody = "Nobody can list and call this tool. The server is public"
    assert nobody in words_in(closed)
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
    text = words_in(seen)
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


def test_who_may_not_view_it_is_refused(staff: Staff, client: Client) -> None:
    row = tool()
    url = page_of(row, "who")
    assert client.get(url).status_code == 302
    assert staff("view_prompt").get(url).status_code == 403


def test_names_need_the_right_to_view_users(staff: Staff, support: Group) -> None:
    row = tool(groups="Support")
    client = staff("view_tool")
    for query in ({}, {"person": "ana"}, {"show": "cannot"}):
        text = words_in(look(client, row, **query))
        assert "2 people can" in text
        assert "Support" in text
        assert " ana" not in text
        assert "Check one person" not in text
        assert "You see numbers and groups only." in text
    grant("view_user")
    assert " ana " in words_in(look(client, row))


@pytest.mark.parametrize("many", [0, 150, *long_cases(2_000)])
def test_any_number_of_people_costs_the_same(
    staff: Staff, support: Group, django_assert_max_num_queries: Queries, many: int
) -> None:
    User.objects.bulk_create(User(username=f"user{n:04}") for n in range(many))
    support.user_set.add(*User.objects.filter(username__startswith="user"))
    client = staff("view_tool", "view_user")
    row = tool(permission=PERMISSION, groups="Support")
    with django_assert_max_num_queries(BUDGET):
        seen = look(client, row)
    assert f"{many + 2:,} people can" in words_in(seen)
    with django_assert_max_num_queries(BUDGET):
        look(client, row, show="cannot")
    with django_assert_max_num_queries(CHECKING):
        assert look(client, row, person="ana").context["admitted"]
    if many:
        last = look(client, row, page="999999")
        assert len(last.context["people"]["shown"]) == 2
        pages = many // 50 + 1
        assert f"Page {pages} of {pages}" in words_in(last)


# -- before it is published ---------------------------------------------------------


def test_publishing_says_how_many_that_is(
    admin_client: Client, support: Group, django_assert_max_num_queries: Queries
) -> None:
    row = Tool.objects.create(name="refund", title="Refund")
    url = page_of(row, "publish")
    assert "Everybody whom a server lets in, at the server default." in words_in(
        admin_client.get(url)
    )
    row.groups = "Support"
    row.save()
    said = "3 people, at the server default. They need: Support."
    assert said in words_in(admin_client.get(url))
    published(row)
    assert said in words_in(admin_client.get(url))
    row.groups = ""
    row.save()
    with django_assert_max_num_queries(15):
        text = words_in(admin_client.get(url))
    assert (
        "3 people now, then everybody whom a server lets in, at the server default."
        in text
    )
    assert "people, at" not in words_in(
        admin_client.get(page_of(Server.objects.get(), "publish"))
    )
