from __future__ import annotations

import pytest
from tests.serving import Connect
from mcp_app.protocol.revisions import REVISIONS

@pytest.mark.parametrize("n", range(20))
@pytest.mark.parametrize("version", REVISIONS)
async def test_add(connect: Connect, version: str, n:int) -> None:
    client = await connect(version)
    out = await client.call("drill_add", a=n, b=2)
    assert out.text == str(n+2)
