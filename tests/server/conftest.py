"""Fixtures of the tests that talk to the endpoint as one client."""

from __future__ import annotations

import pytest

from mcp_app.protocol.revisions import LATEST, LATEST_STATEFUL
from tests.asgi_client import Client
from tests.serving import Connect


@pytest.fixture
def version() -> str:
    """The revision of `client`, where a test names no other."""
    return LATEST.version


@pytest.fixture
async def client(connect: Connect, version: str) -> Client:
    return await connect(version)


@pytest.fixture
async def stateful(connect: Connect) -> Client:
    """A client with a session."""
    return await connect(LATEST_STATEFUL.version)
