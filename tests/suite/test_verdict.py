"""Which failures may be chance, and what else makes a run red."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.suite import unsteady
from tests.suite.parts import Part
from tests.suite.records import Cost, Record
from tests.suite.run import PartRun, Run
from tests.suite.verdict import excesses, judge


def run_of(folder: Path, status: int, *failed: str, at_end: bool = False) -> Run:
    """Return a run of one part, which has ended."""
    records = folder / "records"
    lines = [asdict(Record(test, "failed", at_end=at_end)) for test in failed]
    records.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run = Run()
    part = Part("tests", ["pytest"], has_tests=True)
    run.parts.append(PartRun(part, folder / "output", records, 0.0, status=status))
    return run


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """All tests pass when they run again; return which did."""
    tests: list[str] = []

    def passes(test: str, _environment: object) -> bool:
        tests.append(test)
        return True

    monkeypatch.setattr(unsteady, "is_unsteady", passes)
    monkeypatch.setattr(unsteady, "note", lambda *_: None)
    return tests


def test_two_failures_may_be_chance(tmp_path: Path, tried: list[str]) -> None:
    judged = judge(run_of(tmp_path, 1, "a", "b"), "test", may_be_unsteady=True)
    assert (judged.wrong, judged.unsteady) == ([], ["a", "b"])


def test_many_failures_are_no_chance(tmp_path: Path, tried: list[str]) -> None:
    judged = judge(run_of(tmp_path, 1, "a", "b", "c"), "test", may_be_unsteady=True)
    assert judged.wrong == ["FAILED a", "FAILED b", "FAILED c"]
    assert tried == []


def test_what_fails_when_a_test_is_over_is_no_chance(
    tmp_path: Path, tried: list[str]
) -> None:
    """It may be what others did to something that they share."""
    run = run_of(tmp_path, 1, "a", at_end=True)
    judged = judge(run, "test", may_be_unsteady=True)
    assert (judged.wrong, tried) == (["FAILED a"], [])


def test_nothing_is_chance_unless_it_may_be(tmp_path: Path, tried: list[str]) -> None:
    judged = judge(run_of(tmp_path, 1, "a"), "test", may_be_unsteady=False)
    assert (judged.wrong, tried) == (["FAILED a"], [])


@pytest.mark.parametrize("status", [2, 3, 4, 5, -9])
def test_another_status_is_no_chance(
    tmp_path: Path, tried: list[str], status: int
) -> None:
    wrong = [f"tests ended with {status}."]
    for failed in ([], ["a"]):
        run = run_of(tmp_path, status, *failed)
        assert judge(run, "test", may_be_unsteady=True).wrong == wrong


def test_tests_that_did_not_end(tmp_path: Path, tried: list[str]) -> None:
    run = run_of(tmp_path, 0)
    (tmp_path / "records").write_text('{"collected": 3}\n')
    judged = judge(run, "test", may_be_unsteady=True)
    assert judged.wrong == ["tests: 3 of 3 tests did not end."]


def test_a_status_without_a_failed_test(tmp_path: Path, tried: list[str]) -> None:
    judged = judge(run_of(tmp_path, 1), "test", may_be_unsteady=True)
    assert judged.wrong == ["tests ended with 1."]


def test_a_part_of_which_nothing_is_known(tmp_path: Path, tried: list[str]) -> None:
    for there in (True, False):
        run = run_of(tmp_path, 0)
        if not there:
            run.parts[0].records.unlink()
        judged = judge(run, "test", may_be_unsteady=True)
        assert judged.wrong == ["tests: no test is known to have run."]


def test_one_that_ended_twice_stands_for_no_other(
    tmp_path: Path, tried: list[str]
) -> None:
    run = run_of(tmp_path, 1, "a", "a")
    with (tmp_path / "records").open("a") as file:
        file.write('{"collected": 2}\n')
    judged = judge(run, "test", may_be_unsteady=True)
    assert judged.wrong == ["tests: 1 of 2 tests did not end."]


def test_a_process_that_ended_badly(tmp_path: Path, tried: list[str]) -> None:
    run = run_of(tmp_path, 0)
    lines = ('{"collected": 0}', '{"problem": "after its tests, gw0: why"}')
    (tmp_path / "records").write_text("".join(f"{line}\n" for line in lines))
    judged = judge(run, "test", may_be_unsteady=True)
    assert "tests: after its tests, gw0: why" in judged.wrong


def test_what_cannot_be_collected_is_wrong_beside_a_test_that_may_be_unsteady(
    tmp_path: Path, tried: list[str]
) -> None:
    run = run_of(tmp_path, 1, "a")
    with (tmp_path / "records").open("a") as file:
        file.write('{"problem": "tests/test_b.py cannot be collected."}\n')
    judged = judge(run, "test", may_be_unsteady=True)
    assert judged.wrong == ["tests: tests/test_b.py cannot be collected."]
    assert judged.unsteady == ["a"]


@pytest.mark.parametrize(
    ("outcome", "programs", "seconds", "judged"),
    [
        ("passed", 99, 1.0, True),
        ("failed", 99, 1.0, True),
        # A worker that takes the place of a lost one starts its programs again.
        ("failed", 0, 0.0, False),
    ],
)
def test_a_room_whose_test_ended_its_worker_is_not_too_dear(
    tmp_path: Path, outcome: str, programs: int, seconds: float, judged: bool
) -> None:
    run = run_of(tmp_path, 1)
    run.units.append(1.0)
    others = Record("tests/wire/test_a.py::test_a", "passed", Cost(programs=99))
    cost = Cost(processor=seconds, programs=programs)
    record = Record("tests/wire/test_a.py::test_b", outcome, cost)
    lines = [json.dumps(asdict(each)) for each in (others, record)]
    (tmp_path / "records").write_text("".join(f"{each}\n" for each in lines))
    dear = [each for each in excesses(run) if each.startswith("wire started")]
    assert bool(dear) is judged
