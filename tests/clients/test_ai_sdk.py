"""@ai-sdk/mcp of Vercel: what it says of an access token that is wrong."""

from __future__ import annotations

from typing import Final

import pytest

from tests.clients.guarded import SAID, Guarded
from tests.clients.node import report_of

pytestmark = pytest.mark.xdist_group("access tokens")

SCRIPT: Final = "ai_sdk.mjs"


def test_it_connects_with_a_token(guarded: Guarded) -> None:
    assert report_of(SCRIPT, guarded.url, guarded.token())["tools"] > 0


@pytest.mark.parametrize("shown", ["wrong", "missing"])
def test_it_says_why_it_is_refused(guarded: Guarded, shown: str) -> None:
    report = report_of(SCRIPT, guarded.url, guarded.refused[shown])
    assert SAID[shown] in report["error"]
