"""What the tests of the suite share."""

from __future__ import annotations

import pytest

from tests.suite.marks import long_cases
from tests.suite.stores import STORES, Store, Unreachable


@pytest.fixture(params=["sqlite", "postgresql", *long_cases("mysql")])
def store(request: pytest.FixtureRequest) -> Store:
    """Each store that can be reached."""
    made = STORES[request.param]()
    try:
        made.names()
    except Unreachable as error:
        pytest.skip(str(error))
    return made
