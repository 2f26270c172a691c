"""The page *Try it*: what a person presses, and what a client gets."""

from __future__ import annotations

from html import unescape
from typing import Any

from django.test import AsyncClient

from mcp_app.models import Tool
from tests.admin.pages import Fields, page
from tests.admin.trying.people import Login


async def url_of(model: Any, **which: Any) -> str:
    row = await model.objects.aget(**which)
    return page(row.kind_of_row, "try", row.pk)


async def typed(client: AsyncClient, url: str, **values: Any) -> dict[str, Any]:
    """Return what the page would send, with values for these arguments."""
    response = await client.get(url)
    fields = Fields()
    fields.feed(response.content.decode())
    arguments = response.context["arguments"].fields or []
    names = {each.key: each.name for each in arguments}
    given = {names.get(name, name): value for name, value in values.items()}
    return {**fields.values, **given}


async def run(client: AsyncClient, url: str, **values: Any) -> Any:
    response = await client.post(url, await typed(client, url, **values))
    assert response.status_code == 200
    return response


def text_of(response: Any) -> str:
    return unescape(response.content.decode())


async def test_a_tool_is_run(login: Login) -> None:
    client = await login()
    url = await url_of(Tool, name="drill_add")
    response = await run(client, url, a="2", b="3")
    shown = response.context["shown"]
    assert (shown.look, [each.text for each in shown.parts][0]) == ("good", "5")
    assert "Fits the answer's shape" in text_of(response)
    assert "no-store" in response["Cache-Control"]
