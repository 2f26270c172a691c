"""How many connections a process may have."""

from __future__ import annotations

import pytest

from mcp_app.pools.batching import Connections, of_process, pool_size


@pytest.mark.parametrize(
    ("threads", "counted"),
    [(8, Connections(usual=21, most=69)), (2, Connections(usual=15, most=45))],
)
def test_the_formula(threads: int, counted: Connections) -> None:
    assert of_process(threads) == counted


@pytest.mark.parametrize(
    ("pool", "size"),
    [
        (True, 4),
        ({}, 4),
        ({"min_size": 6}, 6),
        ({"min_size": 2, "max_size": 20}, 20),
        ({"max_size": None}, 4),
    ],
)
def test_a_pool_has_as_many_as_it_says(pool: object, size: int) -> None:
    assert pool_size(pool) == size
