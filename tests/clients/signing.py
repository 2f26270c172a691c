"""A server that programs sign in to, and the document of one of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.clients.people import PASSWORD, USER
from tests.drill.piped import database, environment
from tests.drill.running import ROOT, THERE, running
from tests.oauth.program import WAYS
from tests.oauth.web import Web, web
from tests.process.operating import Operator

SITE: Final = {"DEBUG": "true", "MCP_AUTHENTICATION": json.dumps(WAYS)}
"""On loopback and with DEBUG a site needs no public address."""
PREPARE: Final = f"""
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import Server
from tests.published import published
User.objects.create_user("{USER}", password="{PASSWORD}")
published(Server(slug="signed", access="oauth token"))
"""


@dataclass(frozen=True, slots=True)
class Site:
    url: str
    operator: Operator
    web: Web


@contextmanager
def site(
    directory: Path, server: str = "uvicorn", *, fetches: bool = True, **options: object
) -> Iterator[Site]:
    env = environment(database(directory), **SITE)
    subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True)
    documents: dict[str, object] = {
        "documents": fetches,
        "networks": ["127.0.0.0/8", "::1/128"],
        "ca": str(directory / "certificate.pem"),
        **options,
    }
    given = {
        "DATABASE_URL": env["DATABASE_URL"],
        "MCP_OAUTH": json.dumps(documents),
        **SITE,
        **THERE,
    }
    with (
        web(directory, "localhost") as program,
        running(server, given) as url,
        closing(Operator(given)) as operator,
    ):
        yield Site(f"{url}/signed", operator, program)
