"""Characters that nobody sees are visible on every page that is only read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from mcp_app.catalog.registry import mcp
from mcp_app.models import Prompt, Resource, Server, Tool
from tests.admin.pages import fill_in, fill_in_again, form_page, page, page_of
from tests.published import published

pytestmark = pytest.mark.django_db

HIDDEN = "pay\u202etxt"
SHOWN = "pay⟦U+202E⟧txt"


def text_of(response: Any) -> str:
    assert response.status_code == 200
    text: str = response.content.decode()
    assert SHOWN in text
    return text


def test_lists_and_pages_of_publishing(admin_client: Client) -> None:
    tool = published(Tool.objects.create(name="a", title=HIDDEN))
    Tool.rows().filter(pk=tool.pk).update(description=HIDDEN, broken=f"{HIDDEN}!")
    urls = [page_of(tool, name) for name in ("publish", "history")]
    server = Server.objects.create(slug="a", title=HIDDEN)
    urls += [page_of(server, name) for name in ("publish", "history")]
    for url in (page("tool"), page_of(tool, "version", 1), *urls):
        assert HIDDEN not in text_of(admin_client.get(url))


@pytest.fixture
def function() -> Iterator[str]:
    key = "shop.hidden"

    @mcp.function(key)
    def hidden() -> str:
        """pay\u202etxt"""
        return ""

    yield key
    del mcp.functions[key]


def test_functions(admin_client: Client, function: str) -> None:
    text = text_of(admin_client.get(form_page("tool", "function")))
    assert HIDDEN not in text
    assert f"{function}: {SHOWN}" in text


def test_what_clients_read(admin_client: Client) -> None:
    config = '{"text": "' + HIDDEN + '"}'
    row = Resource.objects.create(name="a", uri="x:a", config=config)
    text_of(admin_client.get(page_of(row)))
    prompt = Prompt.objects.create(
        name="a",
        config='{"messages": [{"content": {"type": "text", "text": "{{a}}"}}]}',
        arguments='[{"name": "a"}]',
    )
    typed = {"preview-a": HIDDEN, "show-preview": "1"}
    assert f">{SHOWN}</pre>" in text_of(fill_in(admin_client, page_of(prompt), **typed))


def test_what_two_people_wrote(admin_client: Client) -> None:
    tool = Tool.objects.create(name="a")
    url = page_of(tool)
    opened = admin_client.get(url)
    tool.description = HIDDEN
    tool.save()
    text = text_of(fill_in_again(admin_client, url, opened, text="a"))
    assert f"<pre>{SHOWN}</pre>" in text
