"""What says that something is away; T33 of the threats: an outage is no refusal."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError
from pytest_django import Settings

from mcp_app.auth import principals
from mcp_app.auth.principals import outage_answer
from mcp_app.interface.errors import ToolError
from mcp_app.interface.principal import AuthenticationRequest, AuthenticationUnavailable
from mcp_app.interface.server import ServerDefinition
from mcp_app.pools.database import authenticators
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.headers import Headers
from tests.process.outages import away


def raised_from(error: Exception, how: str) -> Exception:
    try:
        try:
            raise error
        except Exception as caught:
            if how == "from":
                raise ToolError("wrapped") from caught
            if how == "from none":
                raise ToolError("wrapped") from None
            if how == "group":
                raise ExceptionGroup("several", [ValueError(), caught]) from None
            raise ToolError("wrapped")  # noqa: B904 - as libraries do
    except Exception as found:
        return found


@pytest.mark.parametrize("how", ["from", "from none", "during", "group"])
def test_what_it_comes_from_decides(how: str) -> None:
    found = outage_answer(raised_from(ConnectionRefusedError(), how))
    assert found is not None
    assert (found.http_status, found.headers) == (503, {"Retry-After": "5"})
    assert outage_answer(raised_from(KeyError(), how)) is None


@pytest.mark.parametrize(
    ("error", "is_away"),
    [
        (OperationalError("gone"), True),
        (IntegrityError("twice"), False),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (ssl.SSLError("handshake"), True),
        (socket.gaierror(), True),
        *((OSError(getattr(errno, f"E{e}UNREACH"), ""), True) for e in ("NET", "HOST")),
        (FileNotFoundError(errno.ENOENT, ""), False),
        (PermissionError(errno.EACCES, ""), False),
        (ValueError("wrong"), False),
        (OSError(), False),
        (AuthenticationUnavailable(), True),
    ],
)
def test_kinds_of_errors(error: Exception, is_away: bool) -> None:
    assert (outage_answer(error) is not None) is is_away


def test_errors_that_lead_to_each_other() -> None:
    one, other = ValueError(), KeyError()
    one.__context__, other.__context__ = other, one
    assert outage_answer(one) is None


@pytest.mark.parametrize(
    ("way", "headers"),
    [
        ("mcp_app.authentication.access_token", {"authorization": "Bearer mcp_aaaa"}),
        ("mcp_app.authentication.django_session", {"cookie": "sessionid=aaaabbbbcccc"}),
        ("tests.auth.drf_classes.NamedToken", {"authorization": "Token ana"}),
        ("tests.auth.callables.by_name", {"x-name": "ana"}),
    ],
)
async def test_t33_the_database_is_away(
    served_rows: None, settings: Settings, way: str, headers: dict[str, str]
) -> None:
    settings.MCP = {"AUTHENTICATION": {"mine": way}}
    request = AuthenticationRequest(
        headers=Headers([(a.encode(), b.encode()) for a, b in headers.items()]),
        host="localhost",
        path="/mcp",
        server="default",
    )
    server = ServerDefinition(access=("mine",), slug="default")
    # They have connections of their own only while they ask.
    authenticators.close()
    with away():
        with pytest.raises(Unavailable) as raised:
            await principals.find_principal(server, request)
        assert raised.value.http_status == 503
        assert "Retry-After" in raised.value.headers
    authenticators.close()
    with pytest.raises(Exception) as refused:  # noqa: PT011 - by its status
        await principals.find_principal(server, request)
    found: Any = refused.value
    assert found.http_status == 401
