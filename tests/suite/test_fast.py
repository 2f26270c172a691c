"""What is tried after each change: of what, in which order, and for how long."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suite.commands import Ended
from tests.suite.fast import (
    PYTEST,
    Job,
    LastFailed,
    Outcome,
    changed,
    from_root,
    jobs_of,
    run_in_time,
    summary,
    unknown,
)
from tests.suite.reach import Step

GREEN = (sys.executable, "-c", "")
RED = (sys.executable, "-c", "print('FAILED tests/test_a.py::test_a - no'); exit(1)")
NAMES = [f"tests/some/test_{number}.py" for number in range(12)]


def git(root: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *settings, *arguments], cwd=root, check=True)


def test_what_differs_from_a_commit_and_what_git_does_not_know(tmp_path: Path) -> None:
    for name in ("same.py", "other.py", "gone.py", ".gitignore"):
        (tmp_path / name).write_text("ignored\n")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    (tmp_path / "other.py").write_text("b")
    (tmp_path / "gone.py").unlink()
    (tmp_path / "with a space.py").write_text("a")
    (tmp_path / "ignored").write_text("a")
    differing = ["gone.py", "other.py", "with a space.py"]
    assert changed(tmp_path, "HEAD") == differing
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "second")
    assert changed(tmp_path, "HEAD") == []
    assert changed(tmp_path, "HEAD~1") == differing
    with pytest.raises(subprocess.CalledProcessError):
        changed(tmp_path, "nowhere")


def test_a_file_that_git_never_knew_is_a_mistake(tmp_path: Path) -> None:
    for name in ("here.py", "gone.py", "removed.py"):
        (tmp_path / name).write_text("")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    (tmp_path / "gone.py").unlink()
    git(tmp_path, "rm", "--quiet", "removed.py")
    (tmp_path / "new.py").write_text("")
    known = ["here.py", "gone.py", "removed.py", "new.py"]
    strangers = ["nosuch.py", "../nosuch.py", ".", ".."]
    assert unknown(tmp_path, [*known, *strangers]) == strangers


@pytest.mark.parametrize(
    "name", ["tests/a.py", "./tests/a.py", "tests/b/../a.py", "/site/tests/a.py"]
)
def test_a_file_may_be_named_in_several_ways(name: str) -> None:
    assert from_root(Path("/site"), name) == "tests/a.py"


def test_few_modules_run_in_one_pytest() -> None:
    steps = [Step("mirror", (NAMES[0],)), Step("tests/some", tuple(NAMES[1:]))]
    jobs = list(jobs_of(steps))
    assert [(each.name, len(each.modules)) for each in jobs] == [
        *(("mirror", 1), ("tests/some", 6), ("tests/some", 5)),
    ]
    assert [one for each in jobs for one in each.modules] == NAMES
    assert all(each.command[-len(each.modules) :] == each.modules for each in jobs)


def test_what_failed_last_runs_first_unless_it_drives_programs(tmp_path: Path) -> None:
    last = LastFailed(tmp_path)
    assert list(last.jobs()) == []
    ids = ["tests/test_conf.py::test_a[b::c]", "tests/wire/test_events.py::test_a"]
    last.note([], [*ids, "tests/test_gone.py::test_a"])
    (job,) = last.jobs()
    assert job.command[len(PYTEST) :] == (
        *("--last-failed", "--last-failed-no-failures=none", "tests/test_conf.py"),
    )


def test_what_failed_is_noted_until_its_module_passes(tmp_path: Path) -> None:
    last = LastFailed(tmp_path)
    file = tmp_path / ".pytest_cache/v/cache/lastfailed"
    last.note(["a.py"], ["a.py::test_a", "a.py::test_b"])
    last.note(["a.py", "b.py"], ["a.py::test_a", "b.py::test_a"])
    assert json.loads(file.read_text()) == {"a.py::test_a": True, "b.py::test_a": True}
    last.note(["a.py"], [])
    assert json.loads(file.read_text()) == {"b.py::test_a": True}
    file.write_text("{")
    assert list(last.jobs()) == []


def test_all_run_though_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = [Job("a", RED, ("tests/test_a.py",)), *(Job(each, GREEN) for each in "bcd")]
    outcome = run_in_time(tmp_path, jobs, 60)
    assert sorted(job.name for job, _ in outcome.ran) == ["a", "b", "c", "d"]
    assert outcome.left_out == []
    assert not outcome.passed
    assert summary([], outcome).splitlines() == [
        *("FAILED tests/test_a.py::test_a", "4 jobs ran, 1 failed"),
    ]
    told = capsys.readouterr().out
    assert "a: test_a\nFAILED tests/test_a.py::test_a - no" in told
    assert told.count("passed") == 3


def test_nothing_begins_too_late_and_what_is_left_out_is_named(tmp_path: Path) -> None:
    step = Step("tests/some", tuple(NAMES))
    outcome = run_in_time(tmp_path, [Job("mypy", GREEN), *jobs_of([step])], 0)
    assert outcome.ran == []
    assert outcome.passed
    assert summary(["tests/browser/test_live.py"], outcome) == (
        "left out: mypy\n"
        "left out: tests/some: 12 modules\n"
        "only make test may try tests/browser/test_live.py\n"
        "0 jobs ran, 0 failed; make test also runs 12 modules that were left out"
    )


def test_of_a_room_that_has_begun_the_modules_are_named() -> None:
    begun, late = jobs_of([Step("tests/some", tuple(NAMES[:8]))])
    outcome = Outcome([(begun, Ended(0, "", 1.0))], [late])
    assert summary([], outcome) == (
        "left out: tests/some: some/test_6, some/test_7\n"
        "1 jobs ran, 0 failed; make test also runs 2 modules that were left out"
    )


@pytest.mark.parametrize(("status", "passed"), [(0, True), (5, True), (1, False)])
def test_a_module_without_tests_has_not_failed(status: int, passed: bool) -> None:
    job = Job("a", GREEN)
    assert Outcome([(job, Ended(status, "", 1.0))], []).passed is passed
