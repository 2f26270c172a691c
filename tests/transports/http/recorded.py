"""Calls as real clients write them (`python -m benchmarks.clients --record FILE`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.drill.recorder import SESSION, TOKEN
from tests.transports.http.differing import Request

PATH: Final = Path(__file__).with_name("recorded.jsonl")
TIMES: Final = 3
"""From the third call on a client's way to write them is known."""


OLDER: Final = "2025-03-26"
"""Clients of this revision name none in a header."""
OTHER: Final = ("23", '"x"', "2.5", "22,22", "[")
"""What the second argument becomes, which is 22."""


def recorded(
    *, sessions: Mapping[str, str] | None = None, path: str = "/mcp", token: str = ""
) -> list[Request]:
    """Return the calls of clients, each several times, then with other arguments.

    Those in a session of one of these (an id for each revision), else the stateless
    ones; those with a token, which is this one here, else those without.
    """
    found = []
    for line in PATH.read_text(encoding="utf-8").splitlines():
        read = json.loads(line)
        names = dict(read["headers"])
        if ("authorization" in names) is not bool(token):
            continue
        if ("mcp-session-id" in names) is not bool(sessions):
            continue
        version = dict(read["headers"]).get("mcp-protocol-version", "")
        own = sessions[version or OLDER] if sessions else ""
        headers = tuple(
            (name, value.replace(SESSION, own).replace(TOKEN, token))
            for name, value in read["headers"]
        )
        body = read["body"]
        texts = (*[body] * TIMES, *(body.replace("22", other) for other in OTHER))
        found += [Request(text.encode(), headers, path) for text in texts]
    return found
