"""A server that forks after its first requests; parent and child serve on.

python -m tests.process.forking

Each writes a line of JSON: what its requests came to, the database's ids of the
connections of its threads, and the id of its worker.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any, Final

import django
from asgiref.sync import sync_to_async
from django.db import connection, connections
from django.utils.module_loading import import_string

PATIENCE_S: Final = 120
CONNECTION: Final = {
    "sqlite": "SELECT 0",
    "postgresql": "SELECT pg_backend_pid()",
    "mysql": "SELECT CONNECTION_ID()",
}


def connection_id() -> int:
    """Return what the database calls the connection of this thread."""
    with connection.cursor() as cursor:
        cursor.execute(CONNECTION[connection.vendor])
        return int(cursor.fetchone()[0])


async def requests() -> dict[str, Any]:
    client_class = import_string("tests.asgi_client.Client")
    check_class = import_string("tests.wire.middleware.WireCheck")
    application = import_string("mcp_project.asgi.application")
    client = await client_class(check_class(application), "2025-11-25").open()
    added = [
        (await client.call(tool, a=20, b=22)).text
        for tool in ("drill_add", "drill_add_sync")
    ]
    logged = await client.request("logging/setLevel", {"level": "error"})
    # Async code of the site has its statements in a thread of asgiref's.
    await import_string("mcp_app.invalidation.changes.achanged")("test://a")
    own = [
        await import_string(f"mcp_app.pools.database.{name}").run(connection_id)
        for name in ("reader", "writer", "log_writer")
    ]
    own.append(await sync_to_async(connection_id)())
    worker = import_string("mcp_app.process.current.process")()._row.id
    return {"answers": [*added, logged.status], "connections": own, "worker": worker}


async def closed() -> None:
    await sync_to_async(connections.close_all)()


def serve(name: str) -> None:
    say({"who": name, **asyncio.run(requests())})


def say(what: object) -> None:
    sys.stdout.write(f"{json.dumps(what)}\n")
    sys.stdout.flush()


def main() -> None:
    django.setup()
    # As code does that asks the database while it is loaded.
    say(connection_id())
    serve("parent")
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        serve("child")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    say(status)
    # A child that forgets connections of its parent's threads ends them on MySQL.
    asyncio.run(closed())
    serve("parent")


if __name__ == "__main__":
    main()
