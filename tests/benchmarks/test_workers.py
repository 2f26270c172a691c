"""Two workers are compared with one only where the client has a processor, too."""

from __future__ import annotations

import os

import pytest

from benchmarks.__main__ import main
from benchmarks.figures.workers import too_few


def test_each_worker_and_the_client_need_a_processor() -> None:
    assert too_few(1).endswith("there are 1")
    assert too_few(2) == (
        "3 processors are needed, one for each worker and at least one for the client,"
        " and there are 2"
    )
    assert (too_few(3), too_few(64)) == ("", "")


def test_a_machine_that_cannot_tell_says_so_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert main(["--only", "workers"]) == 0
    printed = capsys.readouterr().out
    assert "| left out | >= 1.7 | -  | 3 processors are needed" in printed
