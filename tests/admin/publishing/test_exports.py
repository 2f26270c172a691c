"""Bundles of what is chosen in a list."""

from __future__ import annotations

import json
from html import unescape

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from mcp_app.models import Server, Tool
from tests.admin.pages import page
from tests.publishing.bundle.content import fill, tool

pytestmark = pytest.mark.django_db


def test_chosen_definitions_are_exported(admin_client: Client) -> None:
    fill()
    row = Tool.objects.get(name="hours")
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    response = admin_client.post(page("tool"), action)
    assert response["Content-Type"] == "application/json"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"].startswith('attachment; filename="mcp-')
    file = json.loads(response.content)
    assert [each["name"] for each in file["tools"]] == ["hours"]
    assert not file["servers"]


def test_servers_take_along_what_they_offer(admin_client: Client) -> None:
    fill()
    row = Server.objects.get(slug="shop")
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    file = json.loads(admin_client.post(page("server"), action).content)
    assert [each["slug"] for each in file["servers"]] == ["shop"]
    assert [each["name"] for each in file["tools"]] == ["Hours", "hours"]
    assert [each["uri"] for each in file["resources"]] == ["shop://logo"]
    assert len(file["blobs"]) == 1


def test_what_cannot_be_exported_is_told(admin_client: Client) -> None:
    row = tool(config='{"content": [{"type": "image", "upload": "gone"}]}')
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    response = admin_client.post(page("tool"), action, follow=True)
    assert "“hours” uses the upload gone…, which no longer exists." in unescape(
        response.content.decode()
    )


@pytest.mark.parametrize("may", [True, False])
def test_it_takes_a_right(client: Client, may: bool) -> None:
    user = User.objects.create_user("kim", is_staff=True)
    names = ["view_tool", "change_tool", *(["bundle"] if may else [])]
    user.user_permissions.set(Permission.objects.filter(codename__in=names))
    client.force_login(user)
    row = tool()
    assert ("export_chosen" in client.get(page("tool")).content.decode()) is may
    action = {"action": "export_chosen", "_selected_action": [row.pk]}
    response = client.post(page("tool"), action)
    assert ("Content-Disposition" in response) is may
