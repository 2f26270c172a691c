"""The server that clients are driven against: the fixture set, with 247 tools.

The default server is open to everyone, and has 100 tools on a page.  The server
`guarded` asks for an access token, and has as many on a page as servers usually have.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.clients.guarded import PREPARE, SAID, USER
from tests.clients.signing import site as signing
from tests.drill.piped import COMMAND, database, environment
from tests.drill.running import ROOT, THERE, ServerFailed, started
from tests.process.operating import Operator

__all__ = ["SAID", "TOOLS", "Site", "serving"]

PLAIN_TOOLS: Final = 199
TOOLS: Final = 247
ROWS: Final = f"""
{PREPARE}
from tests.drill.preparing import prepare
prepare({PLAIN_TOOLS})
"""
SERVER: Final = "uvicorn"


class Site:
    """A server that runs, and what its operator does meanwhile."""

    wrong: Final = f"mcp_{'A' * 43}"
    command: Final = COMMAND

    def __init__(
        self, env: dict[str, str], operator: Operator, record: str = ""
    ) -> None:
        self.environment = env
        self.faults: list[str] = []
        self.signed = ""
        """Where clients sign in: another site, which fetches no documents."""
        self._operator = operator
        self._given = {"DATABASE_URL": env["DATABASE_URL"], "RECORD": record, **THERE}
        self._server = started(SERVER, self._given)

    def address(self, slug: str, transport: str) -> str:
        """Return the URL of one of the two servers."""
        parts = [self._server.url, slug, "sse" if transport == "sse" else ""]
        return "/".join(filter(None, parts))

    def token(self) -> str:
        """Return a new access token."""
        return self._operator.token(USER, uuid4().hex, "--change")

    def revoke(self, token: str) -> None:
        self._operator.revokes(token)

    def restart(self) -> None:
        """Stop the server by SIGTERM, and start it on the same port."""
        port = self._server.port
        self.stop()
        self._server = started(SERVER, self._given, port=port)

    def stop(self) -> None:
        """Stop the server; what it found wrong in its own messages is a fault."""
        with suppress(ServerFailed):
            if not self._server.stop():
                return
        status = self._server.process.returncode
        said = self._server.output[-1000:]
        self.faults.append(f"The server ended with {status}: {said}")


@contextmanager
def serving(record: str = "") -> Iterator[Site]:
    """Run the server with a database of its own until the block ends.

    `record` is a file for how clients write their calls.
    """
    with tempfile.TemporaryDirectory() as directory:
        env = environment(database(Path(directory)))
        subprocess.run([sys.executable, "-c", ROWS], cwd=ROOT, env=env, check=True)
        with closing(
            Operator({"DATABASE_URL": env["DATABASE_URL"], **THERE})
        ) as typist:
            site = Site(env, typist, record)
            (signed := Path(directory, "signed")).mkdir()
            try:
                with signing(signed, SERVER, fetches=False) as other:
                    site.signed = other.url
                    yield site
            finally:
                site.stop()
