from __future__ import annotations

import pytest

from mcp_app.interface.questions import ToolOutput
from mcp_app.protocol.content import Text


def test_meta_of_a_result_has_keys_of_ours() -> None:
    meta = {"com.example/cost": 3, "traceparent": "00-0-0-00"}
    assert ToolOutput([Text("t")], meta=meta).meta == meta
    with pytest.raises(ValueError, match=r"'io\.mcp/cost' of _meta is reserved"):
        ToolOutput([Text("t")], meta={"io.mcp/cost": 3})
