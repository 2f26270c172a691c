"""The fleet as a program beside a test."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.drill.ports import free_port
from tests.newcomer.programs import CHECKOUT, Serving, run, serving, shell_environment

PEOPLE: Final = {"nora": "North", "saul": "South", "wim": "West"}
"""Who works for which company."""
PASSWORD: Final = "a-Long-enough-1"
WRITE: Final = f"""
import json
from tests.fleet.rows import write_rows
print(json.dumps(write_rows({PEOPLE}, {PASSWORD!r})))
"""


class Fleet(NamedTuple):
    served: Serving
    database: Path
    tokens: Mapping[str, str]


@contextmanager
def fleet(folder: Path, **variables: str) -> Iterator[Fleet]:
    """Serve the site with its rows; `variables` are more of its environment."""
    port, database = free_port(), folder / "fleet.sqlite3"
    environment = shell_environment(
        DATABASE_URL=f"sqlite:///{database}",
        DJANGO_SETTINGS_MODULE="tests.fleet.settings",
        **variables,
    )
    manage = [sys.executable, "manage.py"]
    run([*manage, "migrate", "--run-syncdb"], CHECKOUT, environment)
    tokens = json.loads(
        run([*manage, "shell", "-v", "0", "-c", WRITE], CHECKOUT, environment)
    )
    serve = [*("uvicorn", "mcp_project.asgi:application"), "--no-access-log"]
    command = [sys.executable, "-m", *serve, "--port", str(port)]
    with serving(command, CHECKOUT, environment, port) as served:
        yield Fleet(served, database, tokens)
