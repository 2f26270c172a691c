"""The official Python SDK against four processes, each request at any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.clients import test_python_sdk
from tests.clients.conftest import ENVIRONMENT
from tests.clients.test_python_sdk import connect
from tests.drill.databases import PREPARED
from tests.drill.spreading import spread

__all__ = ["connect"]

pytestmark = [*[test_python_sdk.pytestmark], pytest.mark.xdist_group("SDK on clusters")]

ALWAYS: Final = (
    "test_progress_in_order",
    "test_a_client_that_is_sent_away_comes_back",
    "test_two_questions_and_one_ledger_line",
    "test_subscription_of_a_session",
    "test_listening",
)
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
    with (
        PREPARED[request.param]() as database,
        spread(4, {**ENVIRONMENT, "DATABASE_URL": database}) as url,
    ):
        yield url
