"""How database servers are set up; run by `tests/test_databases.py`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.core import checks
from django.db import connections, transaction
from django.db.models import Model

from mcp_app.checks.deployment import check_databases
from mcp_app.invalidation.workers import WorkerRow
from mcp_app.models import Change, LoggedMessage, Server, Worker
from mcp_app.models.durability import doubts
from tests.models.missing import missing
from tests.models.unsafe import fresh
from tests.streams.logging_rows import erase, own_session

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("served_rows")]
__all__ = ["fresh"]


def test_nothing_is_wrong_with_the_databases_of_the_tests() -> None:
    assert doubts("default") == []


def told(databases: list[str]) -> list[checks.CheckMessage]:
    return check_databases(None, databases=databases)


def test_more_processes_than_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(["default"]) == []
    monkeypatch.setenv("WEB_CONCURRENCY", "1000")
    assert told([]) == []
    (message,) = told(["default"])
    assert message.id == "mcp_app.W016"
    assert message.msg.startswith(
        "1000 processes with 21 connections each need 21000, but the database allows"
    )


def test_processes_that_serve_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEB_CONCURRENCY", "many")
    for _ in range(20):
        WorkerRow().renew()
    try:
        (message,) = told(["default"])
    finally:
        Worker.objects.all().delete()
    assert message.msg.startswith("20 processes with 21 connections each need 420, ")


@pytest.mark.parametrize("model", [Server, Worker])
def test_before_the_tables_are_made(model: type[Model]) -> None:
    with missing(model):
        assert told(["default"]) == []


def test_what_is_logged_late_is_not_passed_by() -> None:
    row, messages = own_session(), LoggedMessage.objects
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        messages.log([row.pk], "late")
        pool.submit(_in_own_connection, messages.log, [row.pk], "early").result(60)
        found = pool.submit(_in_own_connection, messages.numbered, row.pk, 0)
        assert found.result(60) == [(1, "early")]
    assert messages.numbered(row.pk, 1) == [(2, "late")]
    Change.objects.all().delete()
    erase()


def _in_own_connection(function: Callable[..., object], *arguments: object) -> object:
    try:
        return function(*arguments)
    finally:
        connections.close_all()
