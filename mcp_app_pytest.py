"""The pytest fixture `mcp_client`: a test client without a line of set-up.

pytest loads this module in every project beside which the package is installed, so it
imports nothing of Django or of the app before a test asks for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mcp_app.test import Client


@pytest.fixture
def mcp_client(db: None) -> type[Client]:
    """Return `mcp_app.test.Client`; the test may use the database."""
    from mcp_app.test import Client  # noqa: PLC0415 - not before a test asks for it

    return Client
