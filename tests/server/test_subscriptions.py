"""The messages of listen streams; what they are told is in the tests of streams."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.server.subscriptions import change_message
from tests.asgi_client import PREFIX
from tests.wire.validation import wire_validator

NEWEST: Final = "2026-07-28"
META: Final = {f"{PREFIX}subscriptionId": 5}

CHANGES: Final[list[tuple[str, str, dict[str, Any] | None]]] = [
    ("tools", "notifications/tools/list_changed", None),
    ("prompts", "notifications/prompts/list_changed", None),
    ("resources", "notifications/resources/list_changed", None),
    ("memo://fixed", "notifications/resources/updated", {"uri": "memo://fixed"}),
]


@pytest.mark.parametrize(("what", "method", "params"), CHANGES)
def test_changes(what: str, method: str, params: dict[str, Any] | None) -> None:
    plain: Any = jsonrpc.read(change_message(what, None))
    expected = {"jsonrpc": "2.0", "method": method}
    assert plain == {**expected, **({"params": params} if params else {})}
    for version, revision in REVISIONS.items():
        if revision.sessions:
            assert wire_validator(version).check(plain) == []
    marked: Any = jsonrpc.read(change_message(what, 5))
    assert marked == {**expected, "params": {**(params or {}), "_meta": META}}
    assert wire_validator(NEWEST).check(marked) == []
