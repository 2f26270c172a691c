"""A server that lets in who shows an access token, and tokens that it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.drill.piped import database, environment
from tests.drill.running import ROOT, THERE, running
from tests.process.operating import Operator
from tests.serving import RATES

USER: Final = "kim"
SELDOM: Final = "seldom"
A_MINUTE: Final = 20
PREPARE: Final = f"""
import django
django.setup()
from django.contrib.auth.models import User
from mcp_app.models import Server, Tool
from tests.published import published
User.objects.create_user("{USER}")
published(Tool(
    name="{SELDOM}", calls_per_minute={A_MINUTE},
    config='{{"content": [{{"type": "text", "text": "Hello."}}]}}',
))
published(Server(slug="guarded", access="token"))
"""

UNAUTHORIZED: Final = 401
SAID: Final[Mapping[str, str]] = {
    "wrong": "There is no such access token.",
    "expired": "This access token has expired.",
    "revoked": "This access token was revoked.",
    "missing": "Authentication is required. Send an access token:"
    " “Authorization: Bearer mcp_…”.",
}
CANCELLED: Final = "The people who run this site cancelled this call."
"""How the answer to a call begins that a revoked token had open."""


def challenge(shown: str) -> str:
    """Return the WWW-Authenticate with which somebody is refused."""
    if shown == "missing":
        return 'Bearer realm="mcp"'
    said = SAID[shown]
    return f'Bearer realm="mcp", error="invalid_token", error_description="{said}"'


@dataclass(frozen=True, slots=True)
class Guarded:
    url: str
    operator: Operator
    refused: Mapping[str, str]
    """By the keys of `SAID`; where nothing is shown it is empty."""

    def token(self) -> str:
        return self.operator.token(USER, uuid4().hex, "--change")


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


@contextmanager
def guarded(directory: Path) -> Iterator[Guarded]:
    env = environment(database(directory))
    subprocess.run([sys.executable, "-c", PREPARE], cwd=ROOT, env=env, check=True)
    limits = {"MCP_LIMITS": json.dumps(RATES)}
    given = {"DATABASE_URL": env["DATABASE_URL"], **limits, **THERE}
    with running("uvicorn", given) as url, closing(Operator(given)) as operator:
        refused = {
            "wrong": f"mcp_{'A' * 43}",
            "expired": operator.token(USER, "expired", "--expires-in", "0m"),
            "revoked": operator.token(USER, "revoked"),
            "missing": "",
        }
        operator.revokes(refused["revoked"])
        yield Guarded(f"{url}/guarded", operator, refused)
