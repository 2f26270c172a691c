"""Errors of the protocol: each has the code and the status that it is to have."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.protocol import errors
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.revisions import LATEST

TEXT = "Something is wrong."


@pytest.mark.parametrize(
    ("error", "code", "status", "data"),
    [
        (errors.ParseError(TEXT), -32700, 400, None),
        (errors.InvalidRequest(TEXT), -32600, 400, None),
        (errors.RequestRefused(403, TEXT), -32600, 403, None),
        (errors.MethodNotFound(TEXT), -32601, 200, None),
        (errors.InvalidParams(TEXT), -32602, 200, None),
        (errors.IncompleteMeta(TEXT), -32602, 400, None),
        (errors.ResourceNotFound("shop://7"), -32602, 200, {"uri": "shop://7"}),
        (errors.InternalError(TEXT), -32603, 200, None),
        (errors.Unavailable(TEXT), -32603, 503, None),
        (errors.Unavailable(TEXT, http_status=429), -32603, 429, None),
        (errors.SwitchedOff(TEXT), -32603, 503, None),
        (errors.HeaderMismatch(TEXT), -32020, 400, None),
        (
            errors.MissingClientCapability(TEXT, {"roots": {}}),
            -32021,
            400,
            {"requiredCapabilities": {"roots": {}}},
        ),
        (
            errors.UnsupportedProtocolVersion("2020-01-01", ("b", "a")),
            -32022,
            400,
            {"supported": ["b", "a"], "requested": "2020-01-01"},
        ),
        (
            errors.UrlElicitationRequired(TEXT, ({"url": "https://shop"},)),
            -32042,
            200,
            {"elicitations": [{"url": "https://shop"}]},
        ),
    ],
)
def test_on_the_wire(
    error: ProtocolError, code: int, status: int, data: dict[str, Any] | None
) -> None:
    assert (error.code, error.http_status, error.data) == (code, status, data)
    assert error.request_id is None
    assert str(error) == error.message


def every(kind: type[ProtocolError]) -> set[type[ProtocolError]]:
    below = kind.__subclasses__()
    return {kind, *below}.union(*map(every, below))


def test_every_error_keeps_the_code_of_its_family() -> None:
    """Who catches a family answers with its code."""
    for family in every(ProtocolError) - {ProtocolError}:
        for error in every(family):
            assert error.code == family.code


JSON_RPC = {-32700, -32600, -32601, -32602, -32603}
OWN = {"HeaderMismatch": -32020, "MissingClientCapability": -32021}
OWN["UnsupportedProtocolVersion"] = -32022


def test_codes_have_their_own_meaning_and_no_others_are_made_up() -> None:
    codes = {each.__name__: each.code for each in every(ProtocolError)}
    own = {name: code for name, code in codes.items() if code > -32100}
    # That of a visit belongs to an older revision.
    assert own.pop("UrlElicitationRequired") == -32042
    assert not LATEST.elicitation_identifiers
    assert own == OWN
    assert {code for code in codes.values() if code < -32100} == JSON_RPC
    assert LATEST.missing_resource_code in JSON_RPC


def test_headers_go_with_a_refusal_and_with_none_else() -> None:
    challenge = {"WWW-Authenticate": "Bearer"}
    assert errors.RequestRefused(401, TEXT, challenge).headers == challenge
    assert errors.RequestRefused(403, TEXT).headers == {}
    assert errors.Unavailable(TEXT).headers == {"Retry-After": "2"}
    assert errors.SwitchedOff(TEXT, retry_after=30).headers == {"Retry-After": "30"}
    assert errors.InvalidParams(TEXT).headers == {}
