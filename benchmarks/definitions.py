"""What 10,000 definitions cost: measured in a process of its own, printed as JSON.

`python -m benchmarks.definitions` in an environment whose database is empty.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from functools import partial

import django

COUNT = 10_000
ROUNDS = 20


def main() -> None:
    """Fill the database, measure, and print seconds by name."""
    django.setup()
    from django.core.management import call_command  # noqa: PLC0415

    call_command("migrate", verbosity=0)
    _fill()
    print(json.dumps({"publish": _publish(), "page": _page()}))


def _fill() -> None:
    from mcp_app.models import Server, Tool  # noqa: PLC0415

    schema = '{"type":"object","properties":{"city":{"type":"string"}}}'
    config = '{"content":[{"type":"text","text":"{{city}}"}]}'
    names = [f"tool_{number:05}" for number in range(COUNT)]
    rows = (
        Tool(
            name=name,
            title=f"Tool {name}",
            description="Says where. Use it when someone asks where it is.",
            input_schema=schema,
            config=config,
            read_only=True,
        )
        for name in names
    )
    Tool.objects.bulk_create(rows, batch_size=500)
    Tool.objects.publish(Tool.objects.all())
    server = Server.objects.get()
    server.access = "public"
    server.save()


def _publish() -> float:
    """Return the CPU seconds in which one published tool becomes part of a catalog."""
    from mcp_app.catalog.registry import Registry  # noqa: PLC0415
    from mcp_app.invalidation.change_reader import ChangeSet  # noqa: PLC0415
    from mcp_app.models import Tool  # noqa: PLC0415
    from mcp_app.process.loading import Catalogs  # noqa: PLC0415

    catalogs = Catalogs(Registry())
    catalogs.load(ChangeSet(everything=True))
    spent = []
    for number in range(ROUNDS):
        row = Tool.objects.get(name=f"tool_{number * 400:05}")
        row.description = f"Edited in round {number}."
        row.save()
        Tool.objects.publish([row])
        news = ChangeSet(rows=(("tool", str(row.pk)),))
        spent.append(_cpu(partial(catalogs.load, news)))
        entry = catalogs.by_slug["default"].tools[row.name]
        assert entry.definition.description == row.description
    return statistics.median(spent)


def _page() -> float:
    """Return the seconds that the list of tools in the admin takes."""
    from django.contrib.auth.models import User  # noqa: PLC0415
    from django.test import Client  # noqa: PLC0415

    client = Client(SERVER_NAME="127.0.0.1")
    client.force_login(User.objects.create_superuser("admin"))
    took = []
    for _ in range(5):
        began = time.perf_counter()
        response = client.get("/admin/mcp_app/tool/")
        took.append(time.perf_counter() - began)
        assert response.status_code == 200
        assert b"tool_00000" in response.content
    return statistics.median(took)


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
