"""The long form: what it keeps of a run, and how it tells of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from benchmarks.reliability import report, site
from benchmarks.reliability.__main__ import TESTS, _missing, _seeded, main
from benchmarks.reliability.model import ALONE, TEST
from benchmarks.reliability.rates import (
    COUNTER,
    COUNTER_LONGER,
    PLAIN,
    UNHEARD,
    WATCHED,
    WATCHED_LONGER,
)
from benchmarks.reliability.rates import TEST as RATES
from benchmarks.reliability.report import DOCUMENT, share, written
from benchmarks.reliability.rounds import Journal, Round
from benchmarks.reliability.stale_reads import TEST as STALE
from mcp_app.wakeup import workers

GOOD = Round(test=STALE, asked=4, announced=0.4)


def test_t_is_that_of_the_app() -> None:
    assert site.FRESHNESS == workers.FRESHNESS


@pytest.mark.parametrize(
    "broken",
    [
        Round(test=STALE, wrong=1),
        Round(test=STALE, unanswered=1),
        Round(test=STALE, untold=1),
        Round(test=STALE, deadlocks=1),
    ],
)
def test_a_round_that_breaks_a_promise(broken: Round) -> None:
    assert GOOD.kept
    assert not broken.kept


def test_a_run_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    journal = Journal.emptied(tmp_path / "results" / "journal")
    assert not list(journal.rounds())
    for kind in ("mariadb", "postgresql", "mariadb"):
        journal.add(kind, GOOD)
    again = Journal(journal.path)
    assert list(again.rounds())[1] == ("postgresql", GOOD)
    assert again.count("mariadb", STALE) == 2
    assert again.count("mariadb", RATES) == 0
    assert not list(Journal.emptied(journal.path).rounds())


def test_a_seed_is_where_a_run_goes_on() -> None:
    model, share = TESTS[TEST]
    assert share < TESTS[ALONE][1]
    for seed, done, first in ((None, 0, 1), (None, 30, 31), (7, 0, 7), (7, 2, 9)):
        assert partial_of(_seeded(model, seed, done)) == {"seed": first}
    stale, _ = TESTS[STALE]
    assert _seeded(stale, 7, 2) is stale


def partial_of(test: object) -> object:
    assert isinstance(test, partial)
    return test.keywords


def test_one_process_is_tried_on_one_kind(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    assert _missing(ALONE, "sqlite", 1000, journal) == 2000
    assert _missing(ALONE, "mariadb", 1000, journal) == 0
    assert _missing(TEST, "mariadb", 1000, journal) == 300


def line(*rounds: Round, kind: str = "postgresql") -> list[str]:
    """Return the cells of the last line of the table."""
    table = report.report([(kind, each) for each in rounds], 1.0)
    return [cell.strip() for cell in table.splitlines()[-1].strip("|").split("|")]


def test_rounds_are_added_up() -> None:
    bad = Round(
        test=STALE,
        asked=4,
        wrong=1,
        untold=2,
        unanswered=3,
        deadlocks=4,
        kills=5,
        resumes=6,
    )
    assert line(GOOD, bad) == [
        *(STALE, "postgresql", "2", "8", "1", "2", "3", "4", "5", "6"),
        *("0.40 s", "0.40 s", "1", "NO"),
    ]
    assert line(GOOD)[-1] == "yes"


@pytest.mark.parametrize(
    ("kind", "seconds", "kept"),
    [
        ("postgresql", 0.75, "yes"),
        ("postgresql", 0.76, "NO"),
        ("postgresql-redis", 0.5, "yes"),
        ("postgresql-redis", 0.51, "NO"),
        ("sqlite", 9.0, "yes"),
    ],
)
def test_announcements_that_are_late(kind: str, seconds: float, kept: str) -> None:
    assert line(Round(test=STALE, asked=1, announced=seconds), kind=kind)[-1] == kept


def test_what_is_not_announced_has_no_time() -> None:
    assert line(Round(test="level", asked=6))[-4:] == ["", "", "0", "yes"]


@pytest.mark.parametrize(
    ("plain", "counter", "deadlocks", "kept"),
    [(100, 30, 0, "yes"), (101, 30, 0, "NO"), (100, 31, 0, "NO"), (100, 30, 1, "NO")],
)
def test_rates(plain: float, counter: float, deadlocks: int, kept: str) -> None:
    found = {WATCHED: 90.0, UNHEARD: 95.0, PLAIN: plain, COUNTER: 80.0}
    found |= {WATCHED_LONGER: 90.0, COUNTER_LONGER: counter}
    *_, last = line(Round(test=RATES, asked=8, rates=found, deadlocks=deadlocks))
    assert last == kept


def test_shares() -> None:
    values = [each / 100 for each in range(1, 101)]
    assert (share(values, 0.5), share(values, 0.99), share([7.0], 0.99)) == (0.51, 1, 7)


def test_the_table_has_its_place_in_the_document(tmp_path: Path) -> None:
    copy = tmp_path / "reliability.md"
    copy.write_bytes(DOCUMENT.read_bytes())
    written("| a table |", copy)
    written("| another |", copy)
    text = copy.read_text("utf-8")
    assert text.count("| another |") == 1
    assert "| a table |" not in text
    before, _, _ = DOCUMENT.read_text("utf-8").partition(report.BEGIN)
    assert text.startswith(before)
    assert text.endswith(f"{report.END}\n")


def test_a_name_that_is_no_test_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nonsense"])
    assert "'late watchers'" in capsys.readouterr().err
