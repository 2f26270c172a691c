"""Whether a request may run twice, and whether another one is the same.

A client that did not get its answer may send a request again, with the same id.
"""

from __future__ import annotations

from hashlib import sha256

from mcp_app.pools.large_work import large_work
from mcp_app.protocol import jsonrpc
from mcp_app.server.exchange import Exchange


def runs_once(exchange: Exchange) -> bool:
    """Whether a request must not run twice.

    That is a call of a tool that the caller may see and that is declared neither
    read-only nor idempotent.
    """
    if exchange.method != "tools/call":
        return False
    name = exchange.params.get("name")
    entry = exchange.catalog.tools.get(name) if type(name) is str else None
    return (
        entry is not None
        and not entry.definition.hints.repeatable
        and exchange.sees(entry.definition)
    )


def request_key(request_id: str | int) -> str:
    """Return the digest of a JSON-RPC id; 1 and "1" differ."""
    return sha256(jsonrpc.write(request_id)).hexdigest()


async def digest_of(exchange: Exchange) -> str:
    """Return the digest of a request; a thread makes it if its arguments are many."""
    if exchange.wide:
        return await large_work.run(exchange.owner, content_digest, exchange)
    return content_digest(exchange)


def content_digest(exchange: Exchange) -> str:
    """Return the digest of a request's content without its progress token."""
    meta = {k: v for k, v in exchange.meta.items() if k != "progressToken"}
    params = {k: v for k, v in exchange.params.items() if k != "_meta"}
    if meta:
        params["_meta"] = meta
    return sha256(jsonrpc.canonical([exchange.method, params])).hexdigest()
