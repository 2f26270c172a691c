"""What the command leaves of rows; tests/process/test_restoring.py restores a site."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from mcp_app import models as tables
from mcp_app.management.commands import mcp_restored
from mcp_app.streams.tasks import RESTORED
from tests.account.apps import app
from tests.admin.tasks.test_subscription_admin import subscription
from tests.management.commands.test_mcp_prune import write
from tests.tasks.test_rows import task

pytestmark = [pytest.mark.django_db, pytest.mark.databases]
BEGUN = ("working", "input_required", "approval", "confirmation")


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_restored, "sleep", lambda _seconds: None)


def restored(*options: str) -> list[int]:
    """Return how many rows each step has met."""
    said = StringIO()
    call_command("mcp_restored", *options, stdout=said)
    database, *lines = said.getvalue().splitlines()
    assert str(connection.settings_dict["NAME"]) in database
    return [int(each.split()[0].replace(",", "")) for each in lines]


def test_what_ends_and_what_stays() -> None:
    write(0)
    failed = [task("a", status=each, call_digest=each) for each in BEGUN]
    again, ended = task("a", rerun=True), task("a")
    tables.Task.objects.end(ended.pk, "a", {"status": "completed", "result": "{}"})
    assert restored() == [1, 2, tables.Counter.objects.count(), 4]
    assert not tables.Session.objects.exists()
    assert tables.Once.objects.exists()
    for row in failed:
        row.refresh_from_db()
        assert (row.status, row.call_digest, row.arguments) == ("failed", None, "")
        assert json.loads(row.error)["message"] == RESTORED
    states = dict(tables.Task.objects.values_list("pk", "status"))
    assert (states[again.pk], states[ended.pk]) == ("working", "completed")


def test_numbers_of_a_second_restore_begin_above_those_of_the_first() -> None:
    rows, last = tables.Counter.objects, 7
    for runs in (2, 1):
        rows.update(value=7)
        for _run in range(runs):
            restored()
        values = list(rows.values_list("value", flat=True))
        assert min(values) > last
        last = max(rows.draw(), *values)
    # The clock was ahead, and is not any more.
    rows.update(value=2**52)
    restored()
    assert not rows.filter(value__lte=2**52).exists()


def test_why_nothing_is_mended() -> None:
    if connection.vendor == "sqlite":
        connection.connection.execute("PRAGMA query_only = 1")
        try:
            with pytest.raises(CommandError, match="to write"), transaction.atomic():
                restored()
        finally:
            connection.connection.execute("PRAGMA query_only = 0")
    MigrationRecorder(connection).migration_qs.filter(app="mcp_app").delete()
    with pytest.raises(CommandError, match="not applied"):
        restored()


def test_a_clone_lets_nobody_in_and_tells_nobody() -> None:
    ana = User.objects.create_user("ana")
    app(ana)
    tables.AccessToken.objects.make(user=ana, name="laptop")
    subscription()
    task(rerun=True)
    restored()
    assert restored("--clone")[3:] == [1, 1, 1, 1]
    assert not tables.AccessToken.objects.filter(revoked=None).exists()
    assert restored("--clone")[3:] == [0, 0, 0, 0]
