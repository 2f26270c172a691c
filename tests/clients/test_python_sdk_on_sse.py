"""The official Python SDK on HTTP+SSE, with one process and with four."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final

import pytest
from mcp.client.sse import sse_client

from tests.clients import test_python_sdk
from tests.clients.conftest import ENVIRONMENT
from tests.clients.facts import STATEFUL
from tests.clients.test_python_sdk import connect
from tests.drill.databases import PREPARED
from tests.drill.spreading import spread
from tests.marks import long_cases

__all__ = ["connect"]

pytestmark = [*[test_python_sdk.pytestmark], pytest.mark.xdist_group("SDK on clusters")]

ALWAYS: Final = (
    "test_lists_every_page_of_tools",
    "test_large_messages_in_order",
    "test_questions_side_by_side",
    "test_subscription_of_a_session",
    "test_failures_of_tools",
)
TRIED: Final = (
    *ALWAYS,
    "test_negotiation",
    "test_content_blocks",
    "test_any_json_comes_back",
    "test_whoami",
    "test_progress_in_order",
    "test_a_client_that_is_sent_away_comes_back",
    "test_large_result",
    "test_log_level_of_a_session",
    "test_elicitation",
    "test_two_questions_and_one_ledger_line",
    "test_sampling",
    "test_roots",
    "test_several_questions_at_once",
    "test_client_that_cannot_be_asked",
    "test_reads_resources",
    "test_session_hears_of_changed_lists",
    "test_unknown_names",
    "test_cancelled_calls_make_room",
    "test_ping",
    "test_calls_side_by_side",
)
globals().update({name: vars(test_python_sdk)[name] for name in TRIED})


@pytest.fixture
def era() -> str:
    return STATEFUL


class Transport:
    def __init__(self, url: str) -> None:
        self._url = url
        self._entered: list[AbstractAsyncContextManager[Any]] = []

    async def __aenter__(self) -> Any:
        made = sse_client(self._url)
        streams = await made.__aenter__()
        self._entered.append(made)
        return streams

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._entered.pop().__aexit__(kind, error, traceback)


@pytest.fixture(scope="module", params=["daphne", *long_cases("four processes")])
def site(
    request: pytest.FixtureRequest, endpoints: Callable[[str], str]
) -> Iterator[str]:
    if request.param == "daphne":
        yield endpoints("daphne")
        return
    with (
        PREPARED["postgresql"]() as database,
        spread(4, {**ENVIRONMENT, "DATABASE_URL": database}) as url,
    ):
        yield url


@pytest.fixture
def endpoint(site: str) -> Transport:
    return Transport(f"{site}/sse")
