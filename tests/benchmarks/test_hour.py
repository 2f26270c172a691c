"""The hour of load: what it takes for a thing that was left behind, and how it ends."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.reliability.hour import BEGIN, GROWTH_MIB, Minute, Verdict, main
from tests.reliability.report import DOCUMENT, END, begin
from tests.reliability.rounds import Round

GOOD = Round(test="load", asked=3, resumes=1)


def verdict(
    *memory: float, found: Round = GOOD, more: Mapping[str, int] | None = None
) -> Verdict:
    minutes = [
        Minute(number, [GOOD, found], {"worker": 4}, [each, 90.0])
        for number, each in enumerate(memory, 1)
    ]
    return Verdict(minutes, more or {})


@pytest.mark.parametrize(
    ("last", "kept"), [(100.0 + GROWTH_MIB, True), (100.5 + GROWTH_MIB, False)]
)
def test_a_process_that_grew_since_it_was_warm(last: float, kept: bool) -> None:
    assert verdict(50.0, 100.0, 130.0, last).kept is kept


@pytest.mark.parametrize(
    "found", [Round(test="load", wrong=1), Round(test="load", unanswered=1)]
)
def test_a_promise_that_was_broken(found: Round) -> None:
    assert verdict(100.0).kept
    assert not verdict(100.0, found=found).kept


def test_rows_that_are_left() -> None:
    assert not verdict(100.0, more={"stream": 1, "call": 9}).kept
    assert verdict(100.0, more={"call": 9, "callstatistic": 2, "callwriter": 1}).kept


def test_its_table_has_its_place_in_the_document() -> None:
    text = DOCUMENT.read_text("utf-8")
    own = text.index(BEGIN)
    assert begin("changes") in text
    assert text.index(END, own) > own


def test_what_is_no_option_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--minutes", "many"])
    assert "--minutes" in capsys.readouterr().err
