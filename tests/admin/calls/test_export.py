"""The CSV file: the calls that were asked for, no formulas, one part after another."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from mcp_app.admin.calls import log
from mcp_app.models import call_rows
from tests.admin.calls.rows import HOUR, crash, write
from tests.admin.pages import page

pytestmark = pytest.mark.django_db

EXPORT = page("call", "export")


def exported(client: Client, **asked: Any) -> list[dict[str, str]]:
    answer: Any = client.get(EXPORT, asked)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith("attachment;")
    return rows_of(b"".join(answer.streaming_content))


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(content.decode().splitlines()))


def test_what_is_asked_for(admin_client: Client) -> None:
    write({"name": "new"}, crash(name="bad", ago_ms=2 * HOUR), {"ago_ms": 48 * HOUR})
    assert [row["name"] for row in exported(admin_client)] == ["new", "bad"]
    (row,) = exported(admin_client, outcome="failed")
    assert row["outcome"] == "crashed"
    assert row["user"] == "maria"
    assert row["took_ms"] == "12.0"
    assert row["error_number"] == "7f3a29cd"
    assert row["told"] == "book_table failed. Its error number in the log is 7f3a29cd."


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(admin_client: Client, start: str) -> None:
    text = f'{start}HYPERLINK("http://x","y")'
    write(dict.fromkeys(("name", "user_name", "client_name", "error"), text))
    (row,) = exported(admin_client)
    for name in ("name", "user", "client", "told"):
        assert row[name].startswith(f"'{start}"[:1])
        assert row[name].endswith('HYPERLINK("http://x","y")')


SIGNS = ("=", "+", "-", "@", *"\uff1d\uff0b\uff0d\uff20\u2212")


def test_a_formula_behind_hidden_characters() -> None:
    assert log.cell("\u202e=1+1") == "⟦U+202E⟧=1+1"
    assert log.cell("-5") == "'-5"
    assert log.cell(5) == "5"


@pytest.mark.parametrize("blank", ["", " ", "\u00a0", "\n", "\r\n ", "\u3000", "\x0b"])
def test_a_formula_behind_blanks_and_in_any_width(blank: str) -> None:
    cells = [log.cell(f"{blank}{sign}1+1") for sign in SIGNS]
    assert [each for each in cells if not each.startswith("'")] == []


@pytest.mark.parametrize("text", ["", " ", " a=1", "a", "\n"])
def test_what_is_no_formula_is_left(text: str) -> None:
    assert not log.cell(text).startswith("'")


@pytest.mark.parametrize("asked", [{}, {"slower": "100"}, {"outcome": "failed"}])
def test_page_after_page_up_to_a_bound(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, asked: dict[str, str]
) -> None:
    # Many begin in the same millisecond, where parts meet.
    write(*(crash(name=f"n{n}", ago_ms=n // 3, took_us=200_000) for n in range(20)))
    monkeypatch.setattr(log, "PART", 4)
    monkeypatch.setattr(call_rows, "LOOKED", 7)
    monkeypatch.setattr("mcp_app.models.calls.LOOKED", 7)
    names = [row["name"] for row in exported(admin_client, **asked)]
    assert sorted(names) == sorted(f"n{n}" for n in range(20))
    monkeypatch.setattr(log, "MOST", 10)
    assert len(exported(admin_client, **asked)) == 10


def test_secrets_and_arguments_are_not_in_it(admin_client: Client) -> None:
    (call,) = write({"principal_client": "f" * 32})
    text = str(exported(admin_client))
    for kept_back in (call.session, call.principal_client, call.arguments_digest):
        assert kept_back not in text


@pytest.mark.django_db(transaction=True)
async def test_under_asgi_it_is_sent_in_parts(
    async_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "PART", 4)
    await sync_to_async(write)(*({"name": f"n{n}"} for n in range(10)))
    root = await sync_to_async(User.objects.create_superuser)("root")
    await async_client.aforce_login(root)
    answer: Any = await async_client.get(EXPORT)
    assert answer.is_async
    parts = [part async for part in answer.streaming_content]
    assert len(parts) == 3
    assert [row["name"] for row in rows_of(b"".join(parts))] == [
        f"n{n}" for n in range(10)
    ]


def test_who_may_not(staff: Callable[..., Client]) -> None:
    assert staff("view_tool").get(EXPORT).status_code == 403
