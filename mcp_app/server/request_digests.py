"""Whether a request may run twice, and whether another one is the same.

A client that did not get its answer may send a request again, with the same id.
"""

from __future__ import annotations

from hashlib import sha256

from mcp_app.pools.large_work import large_work
from mcp_app.protocol import jsonrpc
from mcp_app.server.request import Request


def runs_once(request: Request) -> bool:
    """Whether a request must not run twice.

    That is a call of a tool that the caller may see and that is declared neither
    read-only nor idempotent.
    """
    if request.method != "tools/call":
        return False
    name = request.params.get("name")
    entry = request.catalog.tools.get(name) if type(name) is str else None
    return (
        entry is not None
        and not entry.definition.hints.repeatable
        and request.sees(entry.definition)
    )


def request_key(request_id: str | int) -> str:
    """Return the digest of a JSON-RPC id; 1 and "1" differ."""
    return sha256(jsonrpc.write(request_id)).hexdigest()


async def digest_of(request: Request) -> str:
    """Return the digest of a request; a thread makes it if its arguments are many."""
    if request.is_large:
        return await large_work.run(request.owner, content_digest, request)
    return content_digest(request)


def content_digest(request: Request) -> str:
    """Return the digest of a request's content without its progress token."""
    meta = {k: v for k, v in request.meta.items() if k != "progressToken"}
    params = {k: v for k, v in request.params.items() if k != "_meta"}
    if meta:
        params["_meta"] = meta
    return sha256(jsonrpc.canonical([request.method, params])).hexdigest()
