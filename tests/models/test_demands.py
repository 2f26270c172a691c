"""What the columns of demands cannot have."""

from __future__ import annotations

import pytest

from mcp_app.models import Tool
from mcp_app.models.fields import demand_problems


@pytest.mark.parametrize("groups", [" ", "\n", " a", "a\nb ", "a\n \nb", "\u00a0"])
def test_groups_that_would_be_read_as_others(groups: str) -> None:
    columns = [column for column, _ in demand_problems(Tool(groups=groups))]
    assert columns == ["groups"]


@pytest.mark.parametrize("groups", ["", "a", "a b\nc", "a\n"])
def test_groups_that_are_read_as_they_are(groups: str) -> None:
    assert list(demand_problems(Tool(groups=groups))) == []
