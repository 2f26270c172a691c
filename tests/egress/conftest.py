"""Fixtures of calls to other sites."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pytest_django import Settings

from mcp_app.egress.client import Connections
from tests.egress.peer import Peer, peer_on


@pytest.fixture
async def peer(settings: Settings) -> AsyncIterator[Peer]:
    async with peer_on() as other:
        settings.MCP = {**settings.MCP, "HTTP": other.settings()}
        yield other


@pytest.fixture
async def own() -> AsyncIterator[Connections]:
    made = Connections()
    yield made
    await made.close()
