"""Examples: kept on the page, run before it is published, gone with their row."""

from __future__ import annotations

import json
import time
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.contrib.admin.models import LogEntry
from django.test import AsyncClient

from mcp_app.admin.trying import example_runs, examples
from mcp_app.models import Example, Tool
from tests.admin.trying.conftest import Login, Offer
from tests.admin.trying.console import changed, label_of, run, text_of, typed

SEVERAL: Final = {"a": "2", "b": "3"}


def add(a: int, b: int | None = None) -> str:
    if a < 0:
        time.sleep(3)
    return f"sum {a + (b or 0)}"


async def kept(client: AsyncClient, url: str, name: str, **values: Any) -> str:
    data = await typed(client, url, **values, example_name=name, keep="1")
    response: Any = await client.post(url, data)
    return text_of(response)


def outcomes(response: Any) -> dict[str, tuple[str, str]]:
    examples = response.context["examples"]
    return {each.name: (look, str(words)) for each, look, words in examples}


async def test_an_example_is_kept_run_and_removed(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("adds", add, read_only=True)
    for nothing in ("9" * 5_000, "x", "1"):
        assert (await client.get(f"{url}?example={nothing}")).status_code == 200
    said = await kept(client, url, "two", **SEVERAL, example_expect="sum 5")
    assert "Kept the example “two”." in said
    assert "contains “sum 5”" in said
    await kept(client, url, "one", a="1", b="")
    one, two = [each async for each in Example.objects.order_by("name")]
    assert [json.loads(each.values) for each in (one, two)] == [
        {"a": 1},
        {"a": 2, "b": 3},
    ]
    # A link fills the form in, and a button runs what was kept.
    page = await client.get(f"{url}?example={two.pk}")
    assert [each.value for each in page.context["arguments"].fields] == ["2", "3"]
    response = await run(client, url, a="9", example=str(two.pk))
    assert "two: as expected" in text_of(response)
    await kept(client, url, "two", **SEVERAL, example_expect="sum 6")
    response = await run(client, url, example=str(two.pk))
    assert response.context["judged"][0] == "bad"
    assert label_of(response) == "Answered"
    data = await typed(client, url, remove=str(one.pk))
    said = text_of(await client.post(url, data))
    assert "Removed the example “one”." in said
    history = [each.change_message async for each in LogEntry.objects.order_by("pk")]
    assert history[-1] == "Removed the example “one”."
    await Tool.objects.filter(name="adds").adelete()
    assert not await Example.objects.aexists()


async def test_what_cannot_be_kept_says_why_and_stays(
    client: AsyncClient, offer: Offer, login: Login
) -> None:
    url = await offer("adds", add, read_only=True)
    for name, values, said in (
        ("", {"a": "1"}, "Give the example a name."),
        ("x" * 101, {"a": "1"}, "Name or expected text is too long."),
        ("a\u202eb", {"a": "1"}, "U+202E"),
        ("bad", {"a": "two"}, "Correct what is marked. Nothing was kept."),
        ("big", {"way": "json", "arguments": json.dumps("x" * 20_000)}, "object"),
    ):
        text = await kept(client, url, name, **values)
        assert said in text, name
        assert (
            all(f'value="{each}"' in text for each in values.values()) or name == "big"
        )
    row = await Tool.objects.aget(name="adds")
    await Example.objects.abulk_create(
        Example(kind="tool", ref=str(row.pk), name=f"n{at}", values="{}")
        for at in range(examples.MAX_EXAMPLES)
    )
    assert "There are 30 examples already." in await kept(client, url, "more", a="1")
    assert "Kept the example" in await kept(client, url, "n1", a="1")
    reader = await login("view_tool", "try")
    assert "Keep as an example" not in text_of(await reader.get(url))
    await kept(client, url, "n1", a="4711")
    example = await Example.objects.aget(name="n1")
    assert "4711" in text_of(await reader.get(f"{url}?example={example.pk}"))
    viewer = await login("view_tool")
    assert "4711" not in text_of(await viewer.get(f"{url}?example={example.pk}"))
    data = await typed(reader, url, a="1", example_name="x", keep="1")
    assert (await reader.post(url, data)).status_code == 403


async def test_examples_run_before_it_is_published(
    client: AsyncClient, offer: Offer, login: Login, monkeypatch: Any
) -> None:
    """They warn, and forbid nothing; what changes something is not run unasked."""
    url = await offer("adds", add, publish=False, read_only=True)
    publish = url.replace("/try/", "/publish/")
    await kept(client, url, "holds", **SEVERAL, example_expect="sum 5")
    await kept(client, url, "breaks", a="1", example_expect="sum 7")
    await kept(client, url, "refused", way="json", arguments='{"c": 1}')
    found = outcomes(await client.get(publish))
    assert found["holds"] == ("good", "as expected")
    assert found["breaks"] == ("bad", "the answer does not contain “sum 7”")
    assert found["refused"][0] == "bad"
    assert 'name="looked_at"' in text_of(await client.get(publish))
    reader = await login("view_tool")
    assert outcomes(await reader.get(publish)) == {}
    monkeypatch.setattr(example_runs, "WITHIN_S", 0.2)
    await kept(client, url, "a slow one", a="-1")
    found = outcomes(await client.get(publish))
    assert (found["a slow one"], found["holds"]) == (("warn", "not run"),) * 2
    await changed("adds", read_only=False)
    found = outcomes(await client.get(publish))
    assert {*found.values()} == {("warn", "not run")}


async def test_values_that_no_field_can_say_are_json(
    client: AsyncClient, offer: Offer
) -> None:
    url = await offer("adds", add, read_only=True)
    await kept(client, url, "null", way="json", arguments='{"a": 1, "b": null}')
    example = await Example.objects.aget()
    page = await client.get(f"{url}?example={example.pk}")
    assert page.context["arguments"].by_json
    assert await sync_to_async(example.read)() == {"a": 1, "b": None}
