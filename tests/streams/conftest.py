"""What tests of the log begin with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_app.models import Session
from tests.streams.logging_rows import erase, own_session


@pytest.fixture
def row(served_rows: None) -> Iterator[Session]:
    """A session of the test's own; nothing is left of what is logged."""
    yield own_session()
    erase()
