from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcp_app.models import Call, CallStatistic, CallWriter


@pytest.fixture
def no_calls(served_rows: None) -> Iterator[None]:
    """Real rows, of which those of calls go with the test."""
    yield
    for model in (Call, CallStatistic, CallWriter):
        model._default_manager.all().delete()
