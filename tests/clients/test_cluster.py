"""The official Python SDK against four processes, each request at the next of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.conftest import ENVIRONMENT
from tests.clients.test_python_sdk import (
    connect,
    test_any_json_comes_back,
    test_content_blocks,
    test_foreign_cursor_is_refused,
    test_listening_keeps_to_its_filter,
    test_lists_every_page_of_tools,
    test_lists_resources_templates_and_prompts,
    test_negotiation,
    test_structured_result,
    test_unknown_names,
    test_whoami,
)
from tests.drill.spreading import spread

__all__ = [
    "connect",
    "test_any_json_comes_back",
    "test_content_blocks",
    "test_foreign_cursor_is_refused",
    "test_listening_keeps_to_its_filter",
    "test_lists_every_page_of_tools",
    "test_lists_resources_templates_and_prompts",
    "test_negotiation",
    "test_structured_result",
    "test_unknown_names",
    "test_whoami",
]

pytestmark = pytest.mark.xdist_group("cluster of clients")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Return the URL behind which the processes are."""
    with spread(4, ENVIRONMENT) as url:
        yield url
