"""`python -m benchmarks.wsgi_stress --minutes 10`: threads of requests, for long.

64 threads of gunicorn call sync tools beside publications and revocations, and workers
are ended or killed between.  Then each answered call must have one row in the call log,
but for those of the second before a kill; no call may be without an answer, but for
those that a killed worker had; and no worker may still count a running call.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from benchmarks import servers
from benchmarks.messages import Request, call
from benchmarks.postgres import cluster
from benchmarks.processes import Process, serving
from tests.drill.ports import free_port

THREADS: Final = 64
LOST_S: Final = 2.5
"""A kill may take what was answered so long before: a second, and a busy machine."""
KILL_EVERY_S: Final = 20.0


@dataclass
class Seen:
    """What the callers saw; each list belongs to one of them."""

    answered: list[float] = field(default_factory=list)
    cut: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class Stress:
    """Callers, and what is done to the server meanwhile."""

    def __init__(self, server: Process) -> None:
        self._server = server
        self._over = threading.Event()
        self.kills: list[float] = []
        self.seen = [Seen() for _ in range(THREADS)]
        self.revoked = 0

    def run(self, seconds: float) -> None:
        """Let all of it go on for so long."""
        works: list[Callable[[], None]]
        works = [partial(self._call, caller) for caller in range(THREADS)]
        works += [self._publish, self._revoke, self._kill]
        threads = [threading.Thread(target=each) for each in works]
        for each in threads:
            each.start()
        time.sleep(seconds)
        self._over.set()
        for each in threads:
            each.join()

    def _call(self, caller: int) -> None:
        seen, number, connection = self.seen[caller], 0, None
        while not self._over.is_set():
            number += 1
            request = call("drill_add_sync", {"a": caller, "b": number})
            connection = connection or self._connected()
            try:
                answer = _asked(connection, request)
            except (OSError, http.client.HTTPException):
                seen.cut.append(time.monotonic())
                connection.close()
                connection = None
                continue
            result = answer.get("result", {}).get("structuredContent")
            if result == {"result": caller + number}:
                seen.answered.append(time.monotonic())
            else:
                seen.wrong.append(json.dumps(answer)[:300])

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=60)

    def _publish(self) -> None:
        from mcp_app.models import Tool  # noqa: PLC0415
        from tests.published import published  # noqa: PLC0415

        number = 0
        while not self._over.wait(0.5):
            number += 1
            row = Tool.objects.get(name="drill_add_sync")
            row.description = f"Adds, for the {number}th time."
            row.save()
            published(row)

    def _revoke(self) -> None:
        """A token that is revoked must not be good for one call more."""
        from django.contrib.auth.models import User  # noqa: PLC0415
        from django.utils import timezone  # noqa: PLC0415

        from mcp_app.models import AccessToken, Server  # noqa: PLC0415
        from tests.published import published  # noqa: PLC0415

        published(Server(slug="by-token", access="token"))
        user = User.objects.create_user("stress")
        request = call("drill_whoami", {})
        while not self._over.wait(0.2):
            row, token = AccessToken.objects.make(user=user, may="change", name="x")
            bearer = request.with_token(str(token))
            for status in (200, 401):
                try:
                    found = _status(self._connected(), bearer, "/mcp/by-token")
                except (OSError, http.client.HTTPException):
                    break
                if found != status:
                    self.seen[0].wrong.append(f"A token: {found}, not {status}.")
                row.revoked = timezone.now()
                row.save()
                time.sleep(0.3)
            else:
                self.revoked += 1

    def _kill(self) -> None:
        while not self._over.wait(KILL_EVERY_S):
            worker = random.choice(self._server.tree()[1:])
            how = random.choice([signal.SIGKILL, signal.SIGTERM])
            if how == signal.SIGKILL:
                self.kills.append(time.monotonic())
            os.kill(worker, how)


def _asked(connection: http.client.HTTPConnection, request: Request) -> Any:
    headers = dict(request.lines(connection.port))
    connection.request("POST", "/mcp", request.body(), headers)
    return json.loads(connection.getresponse().read())


def _status(connection: http.client.HTTPConnection, request: Request, path: str) -> int:
    try:
        headers = dict(request.lines(connection.port))
        connection.request("POST", path, request.body(), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def _judged(stress: Stress) -> dict[str, Any]:
    """Return what was counted, and what must be 0."""
    from mcp_app.models import Call, Worker  # noqa: PLC0415

    answered = [when for each in stress.seen for when in each.answered]
    cut = [when for each in stress.seen for when in each.cut]
    wrong = Counter(text for each in stress.seen for text in each.wrong)
    rows = Call.objects.filter(name="drill_add_sync", outcome="answered")
    digests = rows.values_list("arguments_digest", "arguments_size")
    number, distinct = rows.count(), len(set(digests))
    before = sum(any(0 <= k - when < LOST_S for k in stress.kills) for when in answered)
    after = sum(any(-60 < k - when <= 0 for k in stress.kills) for when in cut)
    reports = [json.loads(each.report or "{}") for each in Worker.objects.all()]
    running = sum(sum(each.get("calls", {}).values()) for each in reports)
    return {
        "answered": len(answered),
        "kills": len(stress.kills),
        "tokens revoked": stress.revoked,
        "cut": len(cut),
        "rows": number,
        "lost": max(0, len(answered) - distinct),
        "just before a kill": before,
        "must be 0": {
            "doubled": number - distinct,
            "lost otherwise": max(0, len(answered) - distinct - before),
            "cut without a kill": len(cut) - after,
            "wrong": dict(wrong.most_common(3)),
            "still running": running,
        },
    }


def main() -> None:
    """Run it, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args().minutes
    with cluster() as database:
        with servers.drill(database=database.url):
            """It prepares the database."""
        os.environ |= {
            "DATABASE_URL": database.url,
            "DJANGO_SETTINGS_MODULE": "tests.drill.settings",
        }
        import django  # noqa: PLC0415

        django.setup()
        port = free_port()
        command = [
            *(sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}"),
            *("--worker-class", "gthread", "--workers", "2"),
            *("--threads", str(THREADS // 2), "--log-level", "error"),
            *("--graceful-timeout", "60", "benchmarks.wsgi_peers:application"),
        ]
        environment = {
            **{"DATABASE_URL": database.url, "PEER": "front"},
            "MCP_LIMITS": json.dumps(servers.RATES),
        }
        with serving(command, port, environment) as server:
            stress = Stress(server)
            stress.run(60 * minutes)
            # The last heartbeats say what still runs.
            time.sleep(8)
            found = _judged(stress)
        print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
