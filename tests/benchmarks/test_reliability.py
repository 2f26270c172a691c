"""The long form: what it keeps of a run, and how it tells of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from mcp_app.invalidation import workers
from tests.reliability import report, site
from tests.reliability.__main__ import _missing, _seeded, main
from tests.reliability.model import ALONE, TEST
from tests.reliability.once import KILLED
from tests.reliability.parts import PARTS, TESTS
from tests.reliability.rates import (
    COUNTER,
    COUNTER_LONGER,
    PLAIN,
    UNHEARD,
    WATCHED,
    WATCHED_LONGER,
)
from tests.reliability.rates import TEST as RATES
from tests.reliability.report import DOCUMENT, begin, lost, share, written
from tests.reliability.rounds import Journal, Round, Tried
from tests.reliability.stale_reads import TEST as STALE
from tests.reliability.watchers import LATE

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


def test_a_run_that_goes_on_from_nothing_begins(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "results" / "journal")
    journal.add("mariadb", GOOD)
    assert list(journal.rounds()) == [("mariadb", GOOD)]


def test_what_is_run_begins_anew_and_the_rest_stays(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "results" / "journal")
    journal.forget(["mariadb"], [STALE])
    for kind in ("mariadb", "postgresql"):
        for test in (STALE, LATE):
            journal.add(kind, Round(test=test, asked=1))
            journal.add(kind, tried(test))
    journal.forget(["mariadb", "sqlite"], [STALE, RATES])
    left = [("mariadb", LATE), ("postgresql", STALE), ("postgresql", LATE)]
    assert [(kind, each.test) for kind, each in journal.rounds()] == left
    assert [(kind, each.test) for kind, each in journal.tries()] == left


def tried(test: str, run: str = "a run", seconds: float = 90, load: float = 1) -> Tried:
    return Tried(test=test, run=run, seconds=seconds, load=load)


def test_a_seed_is_where_a_run_goes_on() -> None:
    model, share = TESTS[TEST]
    assert share < TESTS[ALONE][1]
    for test in (model, TESTS[KILLED][0]):
        for seed, done, first in ((None, 0, 1), (None, 30, 31), (7, 0, 7), (7, 2, 9)):
            assert partial_of(_seeded(test, seed, done)) == {"seed": first}
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
    table = report.report([(kind, each) for each in rounds])
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


def test_each_run_of_which_rounds_are_left_is_told() -> None:
    found = [("mariadb", GOOD), ("postgresql", GOOD)]
    tries = [
        ("mariadb", tried(STALE, "first", 120, 2)),
        ("mariadb", tried(STALE, "second", 60, 4)),
        ("postgresql", tried(STALE, "second", 99, 3)),
        ("postgresql", tried(LATE, "third")),
    ]
    first, _, second, _, minutes, _, *table = report.report(found, tries).splitlines()
    assert (first, second) == ("first, load 2.0 to 2.0.", "second, load 3.0 to 4.0.")
    assert minutes == "Minutes, kinds side by side: mariadb 3, postgresql 2."
    assert [row.split("|")[-3].strip() for row in table[2:]] == ["1.6", "3.0"]


def test_columns_that_say_nothing_are_left_out() -> None:
    assert "announced" not in report.report([("mariadb", Round(test=LATE, asked=1))])


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
    assert line(GOOD, Round(test="level", asked=6))[-4:] == ["", "", "0", "yes"]


@pytest.mark.parametrize(
    ("plain", "counter", "deadlocks", "kept"),
    [(100, 30, 0, "yes"), (101, 30, 0, "NO"), (100, 31, 0, "NO"), (100, 30, 1, "NO")],
)
def test_rates(plain: float, counter: float, deadlocks: int, kept: str) -> None:
    """Of one round only deadlocks are judged."""
    found = {WATCHED: 90.0, UNHEARD: 95.0, PLAIN: plain, COUNTER: 80.0}
    found |= {WATCHED_LONGER: 90.0, COUNTER_LONGER: counter}
    tried = Round(test=RATES, asked=8, rates=found, deadlocks=deadlocks)
    assert line(tried, tried, tried)[-1] == kept
    assert line(tried)[-1] == ("NO" if deadlocks else "")


def test_shares() -> None:
    values = [each / 100 for each in range(1, 101)]
    assert (share(values, 0.5), share(values, 0.99), share([7.0], 0.99)) == (0.51, 1, 7)


@pytest.mark.parametrize("part", PARTS)
def test_each_table_has_its_place_in_the_document(tmp_path: Path, part: str) -> None:
    copy = tmp_path / "reliability.md"
    copy.write_bytes(DOCUMENT.read_bytes())
    written("| a table |", begin(part), copy)
    written("| another |", begin(part), copy)
    text = copy.read_text("utf-8")
    assert text.count("| another |") == 1
    assert "| a table |" not in text
    before, _, rest = DOCUMENT.read_text("utf-8").partition(begin(part))
    assert text.startswith(before)
    assert text.endswith(rest.partition(report.END)[2])


def test_a_row_is_not_lost_because_it_was_not_tried(tmp_path: Path) -> None:
    copy = tmp_path / "reliability.md"
    copy.write_text(f"| a | b |\n{begin('changes')}{report.END}", "utf-8")
    rates = dict.fromkeys(report.MODES, 1.0)
    rows = [
        ("mariadb", GOOD),
        ("postgresql", GOOD),
        ("mariadb", Round(test=RATES, rates=rates)),
    ]
    assert lost("changes", rows, copy) == []
    written(report.report(rows), begin("changes"), copy)
    assert lost("changes", rows, copy) == []
    assert lost("changes", rows[1:2], copy) == [(RATES, "mariadb"), (STALE, "mariadb")]
    assert lost("log", [], copy) == []


def test_the_parts_are_all_tests() -> None:
    names = [name for part in PARTS.values() for name in part]
    assert names == list(TESTS)


def test_a_name_that_is_no_test_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "nonsense"])
    assert "'late watchers'" in capsys.readouterr().err
