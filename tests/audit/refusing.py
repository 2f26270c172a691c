"""A database that does not take the rows of a client, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from mcp_app.models import Call
from mcp_app.models.call_writing import Own, SharedValues
from mcp_app.models.calls import CallQuerySet

CLIENT: Final = Call.SHARED.index("client_name")


def refusing(monkeypatch: pytest.MonkeyPatch, error: Exception, client: str) -> None:
    """Let each insert fail that has a row of a client with this name."""
    insert = CallQuerySet.insert

    def refuse(self: CallQuerySet, rows: Mapping[SharedValues, Sequence[Own]]) -> None:
        if any(shared[CLIENT] == client for shared in rows):
            raise error
        insert(self, rows)

    monkeypatch.setattr(CallQuerySet, "insert", refuse)
