"""The revisions, one after the other."""

from __future__ import annotations

import pytest

from mcp_app.protocol.revisions import REVISIONS, Revision


@pytest.fixture(params=REVISIONS.values(), ids=lambda revision: revision.version)
def revision(request: pytest.FixtureRequest) -> Revision:
    found: Revision = request.param
    return found
