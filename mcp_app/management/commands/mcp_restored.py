"""Make a database that was restored from a backup fit to be served."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep, time_ns
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import connections, router
from django.db.models import Case, F, When
from django.utils import timezone

from mcp_app.account.connected_apps import end_connected_apps
from mcp_app.invalidation.workers import delete_workers
from mcp_app.models import AccessToken, EventSubscription, Session, Task, Worker
from mcp_app.models.occurrences import OCCURRENCES
from mcp_app.models.topics import COUNTER, Counter
from mcp_app.models.workers import LIVE_MS
from mcp_app.publishing.overlays import is_up_to_date
from mcp_app.streams.tasks import RESTORED, error_text

GAP: Final = 10**9
"""More numbers than are given out between a backup and the day when it is needed.

It is added only if the clock, in microseconds, is not ahead of the counter.
"""


class Command(BaseCommand):
    help = (
        "Makes a database that was restored from a backup fit to be served. It refuses"
        " if a process renews its heartbeat within 15 seconds."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        text = "For a copy, such as staging: also end tokens, apps and subscriptions."
        parser.add_argument("--clone", action="store_true", help=text)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            using = router.db_for_write(Worker)
            database = connections[using].settings_dict
            self.stdout.write(f"Database: {database['NAME']} {database['HOST']}")
            if not is_up_to_date(using):
                raise CommandError("Migrations are not applied. Run `migrate` first.")
            _check_nobody_serves()
            for count, what in _mend_rows(is_clone=options["clone"]):
                self.stdout.write(f"{count:>10,}  {what}")
        except DatabaseError as error:
            raise CommandError(
                f"Mend this, and run the command again. The database refused: {error}"
            ) from error


def _check_nobody_serves() -> None:
    """Raise `CommandError` if a process renews or inserts its row.

    The rows of a backup may be seconds old, so their age tells nothing.
    """
    rows = Worker.objects.values_list("host", "pid", "seen_ms")
    before = set(rows.all())
    for _second in range(LIVE_MS // 1_000):
        sleep(1)
        for host, pid, _ in set(rows.all()) - before:
            raise CommandError(
                f"Process {pid} on {host} uses this database. Stop all processes,"
                " restore the backup again, and run this command again."
            )


def _mend_rows(*, is_clone: bool) -> Iterator[tuple[int, str]]:
    """Do each step, and yield how many rows it changed; steps may be repeated."""
    yield delete_workers(Worker.objects.all()), "processes forgotten"
    yield sum(iter(Session.objects.all().remove_some, None)), "sessions ended"
    counters = [Counter(name=each) for each in (COUNTER, OCCURRENCES)]
    Counter.objects.bulk_create(counters, ignore_conflicts=True)
    # A second restore of this backup must not begin at the same number again.
    now = time_ns() // 1_000
    value = Case(When(value__lt=now, then=now), default=F("value") + GAP)
    yield Counter.objects.update(value=value), "counters raised"
    # A task that may run again waits for its next run, but not in a copy.
    tasks = Task.objects.all() if is_clone else Task.objects.exclude(rerun=True)
    yield tasks.fail(error_text(RESTORED)), "open tasks failed"
    if is_clone:
        apps = AccessToken.objects.exclude(connection=None)
        yield end_connected_apps(None, apps), "connected apps ended"
        tokens = AccessToken.objects.filter(revoked=None)
        yield tokens.update(revoked=timezone.now()), "access tokens revoked"
        yield EventSubscription.objects.all().delete()[0], "event subscriptions ended"
