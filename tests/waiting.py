"""A pytest plugin: how long a test's own thread waited until other processes know."""

from __future__ import annotations

import threading
import time

import pytest


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds that this thread would have waited; others do wait."""
    found: list[float] = []
    sleep, here = time.sleep, threading.current_thread()

    def slept(seconds: float) -> None:
        if threading.current_thread() is here:
            found.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr("mcp_app.invalidation.workers.time.sleep", slept)
    return found
