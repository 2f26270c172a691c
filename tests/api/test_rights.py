"""Who may do what: the API and the pages of the admin give the same answer."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import include, path

from mcp_app.models import Stop, Tool
from tests.api.test_api import DEEDS, FILE, JSON, client_of, etag, row, stored
from tests.published import published, stopped

__all__ = ["row"]
pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.api.test_rights")]
urlpatterns = [path("api/mcp/", include("mcp_app.api_urls"))]
urlpatterns += [path("admin/", admin.site.urls)]
AGAIN: Final = "Published version 1 again as version 3."
STOP: Final = "Stopped Everything; running calls: cancel."
TABLE: Final[dict[str, tuple[str, Any, str, str]]] = {
    "GET tools/": ("view_tool", None, "tool/", ""),
    "GET tools/{id}/": ("view_tool", None, "tool/{id}/change/", ""),
    "GET tools/{id}/versions/": ("view_tool", None, "tool/{id}/history/", ""),
    "POST tools/{id}/publish/": (
        "publish",
        DEEDS["publish/"],
        "tool/{id}/publish/",
        "Published version 2. so",
    ),
    "POST tools/{id}/unpublish/": (
        "publish",
        {},
        "tool/{id}/unpublish/",
        "Taken off the lists.",
    ),
    "POST tools/{id}/roll-back/": (
        "publish",
        DEEDS["roll-back/"],
        "tool/{id}/rollback/1/",
        AGAIN,
    ),
    "DELETE tools/{id}/": ("delete_tool", {}, "tool/{id}/delete/", ""),
    "GET bundle/": ("bundle", None, "server/import/", ""),
    "PUT bundle/": ("bundle", FILE, "server/import/", "Imported from 021e42c7."),
    "GET stops/": ("stop", None, "server/stop/", ""),
    "POST stops/": ("stop", {"what": "everything"}, "server/stop/", STOP),
    "DELETE stops/{id}/": ("stop", {}, "server/stop/start/", "Started again: hours."),
    "GET schema/": ("", None, "", ""),
}
RIGHTS: Final = "publish", "delete_tool", "bundle", "stop", "change_server", "try"


@pytest.mark.parametrize("operation", TABLE)
def test_the_api_and_the_page_ask_for_the_same_right(row: Tool, operation: str) -> None:
    right, body, page, line = TABLE[operation]
    method, address = operation.split()
    if "roll-back" in address:
        published(row)
    stopped(row)
    is_stop = address.startswith("stops")
    key = {"id": Stop.objects.get().pk if is_stop else row.pk}
    address, page = f"/api/mcp/{address}".format(**key), page.format(id=row.pk)
    # Whoever exports all sees rows of all kinds.
    address += "?definition=tool:hours" if operation == "GET bundle/" else ""
    headers = {"If-Match": etag(row)} if "tools" in address else {}
    sight = "view_tool" if right != "view_tool" else "change_server"

    def answers(client: Client) -> tuple[int, int]:
        text = "" if body is None else json.dumps(body)
        response = client.generic(method, address, text, JSON, headers=headers)
        assert response["Cache-Control"] == "no-store"
        door = client.get if method == "GET" else client.post
        return response.status_code, door(f"/admin/mcp_app/{page}").status_code

    before = stored()
    assert answers(Client())[0] in (401, 403)
    assert answers(client_of(sight, right, is_staff=False))[0] == 403
    for other in (each for each in RIGHTS if right and each != right):
        assert answers(client_of(sight, other, name=other)) == (403, 403)
    assert stored() == before
    assert not LogEntry.objects.exists()
    api, admin_page = answers(client_of(sight, right, name="kim"))
    assert (api in (200, 201, 204), admin_page in (200, 302)) == (True, True)
    lines = [*LogEntry.objects.values_list("user__username", "change_message")]
    told = [("kim", f"{line} Over REST.".strip())]
    assert lines == (told if body is not None else [])
    assert (stored() == before) is (body is None)


def test_the_table_has_all_operations() -> None:
    client = client_of(is_superuser=True)
    paths = client.get("/api/mcp/schema/").json()["paths"]
    kinds = "/tools/", "/bundle/", "/stops/", "/schema/"
    operations = {
        f"{method.upper()} {path[1:]}"
        for path, methods in paths.items()
        for method in methods
        if path.startswith(kinds)
    }
    assert operations == {*TABLE}
