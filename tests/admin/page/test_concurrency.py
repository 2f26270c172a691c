from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import FieldError
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from mcp_app.admin.page import unfold
from mcp_app.admin.page.rights import MAX_NAMES, right_holders, whom_to_ask
from mcp_app.models import Tool
from tests.admin.pages import page, page_of, text_after

pytestmark = pytest.mark.django_db


def test_a_post_locks_its_row_where_the_database_can(admin_client: Client) -> None:
    url = page_of(Tool.objects.create(name="a"))
    with CaptureQueriesContext(connection) as got:
        admin_client.get(url)
    with CaptureQueriesContext(connection) as posted:
        admin_client.post(url, {})
    locks = connection.features.has_select_for_update
    assert not any("FOR UPDATE" in query["sql"] for query in got.captured_queries)
    sent = any("FOR UPDATE" in query["sql"] for query in posted.captured_queries)
    assert sent is locks


def test_a_row_that_is_not_there_is_told(admin_client: Client) -> None:
    url = page("tool", "change", 7)
    looked = admin_client.get(url, follow=True)
    assert "Perhaps it was deleted?" in looked.content.decode()
    assert "This tool was deleted in the meantime." in text_after(admin_client, url, {})


@pytest.mark.parametrize("charset", ["unicode_escape", "utf-7", "utf-16", "latin-1"])
def test_a_form_in_another_encoding_is_refused(
    admin_client: Client, charset: str
) -> None:
    tool = Tool.objects.create(name="a")
    field = 'Content-Disposition: form-data; name="title"\r\n\r\n\\ud800\r\n'
    for url in (page("tool", "change", tool.pk), page("tool", "stop", tool.pk)):
        kind = f"multipart/form-data; boundary=x; charset={charset}"
        body = f"--x\r\n{field}--x--\r\n"
        assert admin_client.post(url, body, content_type=kind).status_code == 400
        kind = "multipart/form-data; boundary=x; charset=UTF8"
        assert admin_client.post(url, body, content_type=kind).status_code != 400


def test_a_page_that_names_no_field_means_the_key(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    url = f"{page_of(tool)}?_to_field="
    assert admin_client.get(url).status_code == 200
    assert admin_client.post(url, {"_to_field": ""}).status_code == 200


# -- lists by an address that somebody wrote ---------------------------------------


@pytest.mark.parametrize("model", ["tool", "resource", "prompt", "server", "session"])
@pytest.mark.parametrize(
    "asked",
    ["{}__regex=(", "{}=%00", "{}__isnull=maybe", "{}__in=%00", "id=1e99", "pk=x"],
)
def test_a_list_is_narrowed_by_its_filters_only(
    admin_client: Client, model: str, asked: str
) -> None:
    name = "slug" if model == "server" else "name"
    column = "client_info" if model == "session" else name
    url = f"{page(model)}?{asked.format(column)}"
    assert admin_client.get(url).status_code in (302, 400)


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ("source__exact=here", 200),
        ("source__exact=%00", 400),
        ("source__exact=here&source__exact=nothing", 400),
        ("kind__regex=(", 400),
        ("source__exact=code&state=published&server=default", 200),
        ("state=%00&server=%00&changes=%00", 200),
        ("q=%00", 200),
    ],
)
def test_filters_take_their_own_values(
    admin_client: Client, asked: str, status: int
) -> None:
    assert admin_client.get(f"{page('tool')}?{asked}").status_code == status


# -- rights ----------------------------------------------------------------------------


NEEDED = "Publishing needs the right “Can publish and roll back”."


def asking(*codenames: str) -> HttpRequest:
    """A request of a user with these permissions."""
    request = RequestFactory().get("/")
    kim = User.objects.create_user("kim")
    kim.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    request.user = kim
    return request


def group(name: str) -> Group:
    made = Group.objects.create(name=name)
    made.permissions.set(Permission.objects.filter(codename="publish"))
    return made


def test_who_has_it_needs_nobody() -> None:
    assert whom_to_ask(asking("publish"), "publish") == ""


def test_people_are_named_only_to_who_may_view_people() -> None:
    User.objects.create_superuser("ana")
    gone = User.objects.create_user("gone", is_active=False)
    group("Editors").user_set.add(User.objects.create_user("lee"), gone)
    assert whom_to_ask(asking(), "publish") == f"{NEEDED} You can ask: Editors."
    User.objects.filter(username="kim").delete()
    assert sorted(right_holders(asking("view_user"), "publish")) == ["ana", "lee"]


def test_only_some_groups_are_named() -> None:
    for number in range(MAX_NAMES + 1):
        group(f"g{number}")
    assert len(right_holders(asking(), "publish")) == MAX_NAMES


def test_nobody_has_it() -> None:
    assert whom_to_ask(asking("view_user"), "publish") == NEEDED


def test_a_site_that_cannot_list_its_people_names_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a user model names its relations otherwise, Django's lookup fails."""

    def with_perm(*asked: object, **options: object) -> None:
        raise FieldError("Unsupported lookup 'user'")

    monkeypatch.setattr(ModelBackend, "with_perm", with_perm)
    assert whom_to_ask(asking("view_user"), "publish") == NEEDED


def test_pages_are_djangos() -> None:
    """Those of django-unfold are in tests/browser/test_unfold.py."""
    assert not unfold.HAS_UNFOLD
    assert unfold.ModelAdmin is admin.ModelAdmin
    assert unfold.OBJECT_TOOL == "li"
    assert unfold.FORM_STYLES == ("admin/css/forms.css",)
    for model, each in admin.site._registry.items():
        if model._meta.app_label == "mcp_app":
            assert isinstance(each, unfold.ModelAdmin)
