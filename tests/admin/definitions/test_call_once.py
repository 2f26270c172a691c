"""What another site answers, tried from the admin."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils.log import AdminEmailHandler
from pytest_django import Settings

from mcp_app.models import Call, ResourceTemplate, Tool
from tests.admin.pages import page
from tests.egress.peer import Peer, answer, peer_in_thread

pytestmark = [pytest.mark.django_db]

SECRET = "canary-in-a-header"
PARAMETERS = {
    "type": "object",
    "properties": {
        "sku": {"type": "string"},
        "n": {"type": "integer", "default": 3},
    },
}
CONFIG = {
    "site": "peer",
    "path": "/articles/{{sku}}",
    "query": [{"name": "n", "value": "{{n}}"}],
    "take": "article",
}


@pytest.fixture
def peer(settings: Settings) -> Iterator[Peer]:
    with peer_in_thread() as other:
        sites = other.settings(secret_headers={"X-Partner": SECRET})
        settings.MCP = {**settings.MCP, "HTTP": sites}
        yield other


def _tool(**config: Any) -> str:
    row = Tool.objects.create(
        name="article",
        kind="http",
        config=json.dumps({**CONFIG, **config}),
        input_schema=json.dumps(PARAMETERS),
    )
    return page("tool", "call_once", row.pk)


def _text(response: Any) -> str:
    assert response.status_code == 200
    return unescape(response.content.decode())


def test_a_call(admin_client: Client, peer: Peer) -> None:
    url = _tool()
    shown = _text(admin_client.get(url))
    assert "This tool calls GET" in shown
    assert not peer.received
    peer.send = answer({"article": {"name": "Kettle", "key": SECRET}})
    told = _text(admin_client.post(url, {"value-sku": "a/b", "value-n": ""}))
    assert peer.received[0].target == "/api/articles/a%2Fb?n=3"
    assert peer.received[0].header("X-Partner") == [SECRET]
    assert '"name": "Kettle"' in told
    assert "Status 200, " in told
    assert SECRET not in told
    assert not Call.objects.exists()


def test_what_fails(admin_client: Client, peer: Peer) -> None:
    url = _tool()
    peer.send = answer("<p>No</p>", 500, "text/html")
    told = _text(admin_client.post(url, {"value-sku": "a"}))
    assert "Help desk failed (500)." in told
    assert "<p>No</p>" in told
    told = _text(admin_client.post(url, {"value-sku": ".."}))
    assert "This call was refused by this site's rules." in told
    assert "A segment of the path is “.” or “..”." in told


class Mails(AdminEmailHandler):
    """Keeps the texts of mails, the plain one and the one in HTML."""

    texts: Sequence[str] = ()

    def send_mail(
        self, subject: object, message: object, *_: object, **options: Any
    ) -> None:
        self.texts = [str(message), str(options["html_message"])]


def test_a_bug_shows_no_secret(
    admin_client: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither on Django's page for developers, nor in its mail to administrators."""

    def fails(output: object) -> Any:
        raise RuntimeError("a bug of ours")

    monkeypatch.setattr("mcp_app.admin.definitions.call_once._shown", fails)
    settings.DEBUG = True
    handler = Mails(include_html=True)
    logger = logging.getLogger("django.request")
    logger.addHandler(handler)
    monkeypatch.setattr(admin_client, "raise_request_exception", False)
    try:
        with peer_in_thread() as other:
            secrets = {"X-Partner": SECRET, "Cookie": f"a=b; sid={SECRET}"}
            sites = other.settings(
                secret_headers=secrets, secret_query={"api_key": SECRET}
            )
            settings.MCP = {**settings.MCP, "HTTP": sites}
            other.send = answer({"article": {"you sent": SECRET}})
            response = admin_client.post(_tool(), {"value-sku": "sku-of-a-call"})
            assert SECRET in other.received[0].target
    finally:
        logger.removeHandler(handler)
    assert response.status_code == 500
    texts = [response.content.decode(), *handler.texts]
    assert len(texts) == 3
    for text in texts:
        assert "a bug of ours" in text
        assert SECRET not in text


def test_what_changes_things_is_not_tried(admin_client: Client, peer: Peer) -> None:
    told = _text(admin_client.post(_tool(method="POST"), {"value-sku": "a"}))
    assert "This call changes things, so it cannot be tried here." in told
    assert not peer.received


def test_a_site_that_is_gone(admin_client: Client, settings: Settings) -> None:
    settings.MCP = {}
    told = _text(admin_client.get(_tool()))
    assert "The settings have no site “peer” that can be used." in told


def test_a_template(admin_client: Client, peer: Peer) -> None:
    config = json.dumps({"site": "peer", "path": "/{{id}}"})
    row = ResourceTemplate.objects.create(
        name="t", uri_template="ticket://{id}", kind="http", config=config
    )
    peer.send = answer("A ticket.", media_type="text/plain")
    url = page("resourcetemplate", "call_once", row.pk)
    assert "A ticket." in _text(admin_client.post(url, {"value-id": "5"}))


def test_other_kinds_have_no_such_page(admin_client: Client) -> None:
    row = Tool.objects.create(name="a", kind="text")
    assert admin_client.get(page("tool", "call_once", row.pk)).status_code == 404


def test_it_needs_the_right(client: Client, peer: Peer) -> None:
    url = _tool()
    user = User.objects.create_user("lee", is_staff=True)
    for codename in ("view_tool", "change_tool"):
        user.user_permissions.add(Permission.objects.get(codename=codename))
    client.force_login(user)
    assert client.post(url, {"value-sku": "a"}).status_code == 403
    assert not peer.received
    form = url.replace("/call/", "/change/")
    assert "/call/" not in client.get(form).content.decode()
    user.user_permissions.add(Permission.objects.get(codename="behind"))
    assert "/call/" in client.get(form).content.decode()
