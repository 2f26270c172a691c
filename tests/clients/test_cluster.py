"""The official Python SDK against four processes, each request at any of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients import test_python_sdk
from tests.clients.conftest import ENVIRONMENT
from tests.clients.test_python_sdk import connect
from tests.drill.databases import PREPARED
from tests.drill.spreading import spread

__all__ = ["connect"]

pytestmark = [*[test_python_sdk.pytestmark], pytest.mark.xdist_group("SDK on clusters")]

# Whatever that client does with one process, it does with four.
globals().update(
    {
        name: found
        for name, found in vars(test_python_sdk).items()
        if name.startswith("test_")
    }
)


@pytest.fixture(scope="module", params=["postgresql"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """Return the URL behind which the processes are."""
    with (
        PREPARED[request.param]() as database,
        spread(4, {**ENVIRONMENT, "DATABASE_URL": database}) as url,
    ):
        yield url
