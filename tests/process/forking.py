"""A server that forks after its first requests; parent and child serve on.

python -m tests.process.forking
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Final

import django
from django.utils.module_loading import import_string

PATIENCE_S: Final = 30


async def requests() -> str:
    """Make requests that need every kind of thread; say what came of them."""
    client_class = import_string("tests.asgi_client.Client")
    check_class = import_string("tests.wire.middleware.WireCheck")
    application = import_string("mcp_project.asgi.application")
    client = await client_class(check_class(application), "2025-11-25").open()
    added = [
        (await client.call(tool, a=20, b=22)).text
        for tool in ("drill_add", "drill_add_sync")
    ]
    logged = await client.request("logging/setLevel", {"level": "error"})
    return f"{added[0]} {added[1]} {logged.status}"


def serve(name: str) -> None:
    sys.stdout.write(f"{name}: {asyncio.run(requests())}\n")
    sys.stdout.flush()


def main() -> None:
    django.setup()
    import_string("tests.drill.preparing.prepare")()
    serve("parent")
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE_S)
        serve("child")
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.stdout.write(f"child ended with {status}\n")
    sys.stdout.flush()
    serve("parent")


if __name__ == "__main__":
    main()
