"""One call in full: who, what, what it means, and what was not kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mcp_app.admin.calls.presentation import milliseconds_text
from mcp_app.interface.call_record import FAILED, REFUSED, Outcome
from mcp_app.interface.log_secrets import BLOT
from mcp_app.models import AccessToken, Call, Prompt, Resource, ResourceTemplate, Tool
from mcp_app.models.definitions import Source
from tests.account.apps import app
from tests.admin.calls.rows import HOUR, crash, write
from tests.admin.pages import Staff, grant, page, words_of
from tests.published import published

pytestmark = pytest.mark.django_db


def shown(client: Client, call: Call) -> str:
    return words_of(client, page("call", "change", call.pk))


def test_a_call_that_failed_in_full(admin_client: Client) -> None:
    user = User.objects.create_user("maria")
    token, secret = AccessToken.objects.make(name="Claude Code", user=user)
    tool = published(Tool.objects.create(name="book_table", title="Book a table"))
    of = {"user_id": str(user.pk), "principal_client": token.family, "version": 1}
    others = {"outcome": "failed"}, {"kind": "prompt"}, {"ago_ms": 25 * HOUR}
    first, *_others = write(
        crash(took_us=312_400, **of),
        crash(**of),
        *(crash(**of, **other) for other in others),
    )
    text = shown(admin_client, first)
    for said in (
        '<span class="mcp-state bad">Crashed</span>',
        "<h1>Call of Book a table</h1>",
        "error number <code>7f3a29cd</code>",
        "This counts as a failure. 2 calls ended like this in the 24 hours from",
        "The same call will most likely fail again.",
        "Give the error number to the developers",
        "Until the code is repaired, stop the definition",
        '<pre class="mcp-code">book_table failed. Its error number in the log is'
        " 7f3a29cd.</pre>",
        f'<a href="{page("tool", "change", tool.pk)}">Book a table</a>',
        f'<a href="{page("tool", "version", tool.pk, 1)}">1</a>',
        f"access token {token.prefix}… (Claude Code)",
        f'<a href="/admin/auth/user/{user.pk}/change/">maria</a>',
        "<code>abcdef01</code>",
        "2025-11-25",
        "312 ms",
    ):
        assert said in text
    # Nothing that lets anybody in, or tells what was sent.
    for kept_back in (secret, token.digest, token.family, first.arguments_digest):
        assert kept_back not in text


def test_links_follow_rights(staff: Staff) -> None:
    published(Tool.objects.create(name="book_table"))
    maria = User.objects.create_user("maria")
    (call,) = write(crash(user_id=str(maria.pk)))
    client = staff("view_call")
    links = {"view_tool": "/tool/", "view_user": "/auth/user/"}
    text = shown(client, call)
    for each in links.values():
        assert each not in text
    for right, each in links.items():
        grant(right)
        assert each in shown(client, call)


def test_values_are_shown_and_tried_again_with_the_right(staff: Staff) -> None:
    schema = {"type": "object", "properties": {"sku": {"type": "string"}, "pin": {}}}
    tool = Tool(name="find", keeps_values=True, input_schema=json.dumps(schema))
    tool.config = json.dumps({"content": [{"type": "text", "text": "a"}]})
    published(tool)
    given = {"name": "find", "arguments": f'{{"sku": "P-100", "pin": "{BLOT}"}}'}
    (call,) = write(given)
    url = f"{page('tool', 'try', tool.pk)}?call={call.pk}"
    client = staff("view_call", "view_tool", "try")
    text = shown(client, call)
    assert "This needs the right “Can see values of calls”." in text
    assert "P-100" not in text + words_of(client, url) + words_of(client, page("call"))
    grant("view_values")
    text = shown(client, call)
    assert '<th scope="row">sku</th><td>P-100</td>' in text
    assert "hidden: private, or a secret" in text
    assert "This tool keeps values for 7 days." in text
    assert f'<a class="mcp-btn quiet" href="{url}">Run it again in Try it</a>' in text
    text = words_of(client, url)
    assert 'value="P-100"' in text
    assert BLOT not in text
    for key in ("0", "x", "9" * 99):
        assert "P-100" not in words_of(client, f"{url.partition('?')[0]}?call={key}")


def test_such_calls_are_listed(admin_client: Client) -> None:
    oldest, *_rest = write(
        crash(ago_ms=2 * HOUR), crash(), crash(name="other"), crash(outcome="failed")
    )
    answer = admin_client.get(page("call", "change", oldest.pk))
    lines = admin_client.get(answer.context["details"].similar_url).context["lines"]
    same = ("book_table", "Crashed")
    assert [(each["name"], each["label"]) for each in lines] == [same, same]


def test_a_call_of_a_connected_app_names_it(admin_client: Client) -> None:
    user = User.objects.create_user("ana")
    row = app(user)
    (call,) = write({"user_id": str(user.pk), "principal_client": row.family})
    assert f"connected app {row.prefix} (Claude)" in shown(admin_client, call)


def test_who_and_what_is_gone_keeps_its_name(admin_client: Client) -> None:
    (call,) = write({"user_id": "999", "principal_client": "f" * 32})
    text = shown(admin_client, call)
    assert "<td>maria (deleted), an access token that no longer exists</td>" in text
    assert "<td>book_table (deleted)</td>" in text
    assert "/auth/user/999" not in text


@pytest.mark.parametrize("user_id", ["", "no-number", "9" * 40])
def test_users_that_cannot_be(admin_client: Client, user_id: str) -> None:
    (call,) = write({"user_id": user_id, "user_name": "", "principal": "anonymous"})
    assert (user_id or "anonymous") in shown(admin_client, call)


@pytest.mark.parametrize(
    ("kind", "row", "label"),
    [
        ("prompt", Prompt(title="Greet"), "Prompt"),
        ("resource", Resource(uri="x:a", title="Greet"), "Resource"),
        ("template", ResourceTemplate(uri_template="{a}", title="Greet"), "Resource t"),
    ],
)
def test_what_is_no_tool(admin_client: Client, kind: str, row: Any, label: str) -> None:
    row.name = "a"
    row.save()
    (call,) = write({"kind": kind, "name": row.identity, "user_name": "maria"})
    text = shown(admin_client, call)
    assert "<h1>Call of Greet</h1>" in text
    assert f'<th scope="row">{label}' in text


def test_what_nothing_is_called(admin_client: Client) -> None:
    (call,) = write({"name": "", "outcome": "unknown", "version": 0})
    text = shown(admin_client, call)
    assert "<h1>Call of an unknown name</h1>" in text
    assert "(deleted)" not in text
    assert "<td>None: there is nothing with this name</td>" in text
    write(*[{"name": "", "outcome": "unknown", "version": 0}] * 2)
    text = shown(admin_client, call)
    assert "3 calls ended like this in the 24 hours" in text


def test_what_answered_without_a_version(admin_client: Client) -> None:
    from_code = Tool.objects.create(name="add", source=Source.CODE)
    working_copy = Tool.objects.create(name="greet")
    tried = {"outcome": "answered", "version": 0, "principal": "console"}
    rows = from_code, working_copy
    one, other = write(*({"name": row.name, **tried} for row in rows))
    assert "<td>As the code says</td>" in shown(admin_client, one)
    assert "<td>None: a working copy that was tried</td>" in shown(admin_client, other)


@pytest.mark.parametrize("outcome", Outcome)
def test_every_outcome_has_a_page(admin_client: Client, outcome: Outcome) -> None:
    (call,) = write({"outcome": outcome.value})
    text = shown(admin_client, call)
    assert "What happened" in text
    assert ("counts as a failure" in text) is (outcome in FAILED)
    assert ("does not count" in text) is (outcome in REFUSED)


@pytest.mark.parametrize("key", [999, 2**63, 2**70])
def test_a_call_that_is_gone(admin_client: Client, key: int) -> None:
    assert admin_client.get(f"{page('call')}{key}/").status_code == 404


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [(0.2, "< 1 ms"), (1, "1 ms"), (312.4, "312 ms"), (2_345, "2.3 s")],
)
def test_times_in_words(milliseconds: float, said: str) -> None:
    assert milliseconds_text(milliseconds) == said
