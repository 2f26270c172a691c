"""The page *Try it*, filled in like a person with a browser without scripts."""

from __future__ import annotations

from html import unescape
from typing import Any

from asgiref.sync import sync_to_async
from django.test import AsyncClient

from mcp_app.models import Tool
from tests.admin.pages import Fields, page
from tests.published import published


async def url_of(model: Any, **which: Any) -> str:
    row = await model.objects.aget(**which)
    return page(row.kind_of_row, "try", row.pk)


async def changed(name: str, *, publish: bool = False, **columns: Any) -> None:
    """Change the working copy of a tool, and perhaps publish it."""

    def change() -> None:
        row = Tool.objects.get(name=name)
        for column, value in columns.items():
            setattr(row, column, value)
        row.save()
        if publish:
            published(row)

    await sync_to_async(change)()


async def typed(client: AsyncClient, url: str, **values: Any) -> dict[str, Any]:
    """Return what the page would send, with values for these arguments and inputs.

    None stands for an input that is not sent.
    """
    return filled(await client.get(url), **values)


def filled(response: Any, **values: Any) -> dict[str, Any]:
    """Return what a page that is open would send, with these values."""
    fields = Fields()
    fields.feed(response.content.decode())
    arguments = response.context["arguments"].fields or []
    questions = [
        each for form in response.context.get("forms", ()) for each in form.fields
    ]
    names = {each.key: each.name for each in (*questions, *arguments)}
    given = {names.get(name, name): value for name, value in values.items()}
    sent = {**fields.values, **given}
    return {name: value for name, value in sent.items() if value is not None}


async def run(client: AsyncClient, url: str, **values: Any) -> Any:
    return await send(client, url, await typed(client, url, **values))


async def send(client: AsyncClient, url: str, sent: dict[str, Any]) -> Any:
    response: Any = await client.post(url, sent)
    assert response.status_code == 200
    return response


async def answer(
    client: AsyncClient, url: str, page: Any, action: str = "accept", **values: Any
) -> Any:
    """Answer the questions of a page."""
    return await send(client, url, {**filled(page, **values), "answer": action})


def text_of(response: Any) -> str:
    return unescape(response.content.decode())


def result_of(response: Any) -> str:
    """Return the first part of what the client gets, else its JSON."""
    shown = response.context.get("shown")
    assert shown is not None, response.context["problem"]
    parts = [*shown.parts, *filter(None, [shown.json])]
    assert parts, (str(shown.label), shown.sentence)
    return str(parts[0].text)


def label_of(response: Any) -> str:
    return str(response.context["shown"].label)
