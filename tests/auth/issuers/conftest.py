"""Fixtures of external issuers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.auth.issuers.loopback_issuer import LoopbackIssuer, loopback_issuer


@pytest.fixture
def issuer() -> Iterator[LoopbackIssuer]:
    with loopback_issuer() as made:
        yield made


class Clock:
    """The time of key sets, which stands until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("mcp_app.auth.issuer_keys.monotonic", made)
    return made
