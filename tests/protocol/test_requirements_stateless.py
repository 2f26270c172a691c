"""What 2026-07-28 demands of the codes of errors."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_app.protocol.errors import ProtocolError, UrlElicitationRequired
from mcp_app.protocol.revisions import LATEST

JSON_RPC = {-32700, -32600, -32601, -32602, -32603}
OWN = {"HeaderMismatch": -32020, "MissingClientCapability": -32021}
OWN["UnsupportedProtocolVersion"] = -32022


def errors(root: type[ProtocolError] = ProtocolError) -> Iterator[type[ProtocolError]]:
    yield root
    for each in root.__subclasses__():
        yield from errors(each)


def test_codes_have_their_own_meaning_and_no_others_are_made_up() -> None:
    own = {each.__name__: each.code for each in errors() if each.code > -32100}
    # That of a visit belongs to an older revision.
    assert own.pop(UrlElicitationRequired.__name__) == -32042
    assert not LATEST.elicitation_identifiers
    assert own == OWN
    assert {each.code for each in errors() if each.code < -32100} == JSON_RPC
    assert LATEST.missing_resource_code in JSON_RPC
