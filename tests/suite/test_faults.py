"""Faults of one line: which there are, where they apply, and how one is judged."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event

import pytest

from tests.suite.commands import Ended, Stopped
from tests.suite.faults import judging
from tests.suite.faults.drawing import WEIGHTY, drawn
from tests.suite.faults.judging import Copy, named, near, stages
from tests.suite.faults.listing import NEAR, Fault, plant, planted, read, write
from tests.suite.faults.mutation import candidates, compiles
from tests.suite.reach import Step
from tests.suite.rooms import ROOT

MODULE = '''
async def some(a: int, b: list[int]) -> list[int]:
    """Return three of 3."""
    if a < 3 and b:
        raise ValueError(f"{a if a else 1} is not 7")
    b.sort(reverse=True)
    b[0] += 1
    if not a:
        return await other(b)
    return [each for each in b if each]
'''
LEFT_ALONE = '''
"""It has 3 of them."""
__all__ = [1]
if TYPE_CHECKING:
    from there import it
Number: TypeAlias = Literal[1]
number: Literal[1]

@dataclass(frozen=True)
class Shape(TypedDict, total=False):
    size: Literal[2]

    def __repr__(self) -> str:
        return self.size

    def some(self, a: Literal[1] | None) -> Literal[1]:
        logger.warning("%d", 3)
        _logger.info(f"{3 if a else 4}")
'''


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        ("condition negated", "if a < 3 and b:", "if (not (a < 3 and b)):"),
        ("condition negated", "if not a:", "if (a):"),
        ("condition negated", "b if each]", "b if (not (each))]"),
        ("and for or", "a < 3 and b", "a < 3 or b"),
        ("boundary", "a < 3", "a <= 3"),
        ("one off", "a < 3", "a < 4"),
        ("one off", "b[0]", "b[1]"),
        ("guard left out", "if a < 3 and b:", "if False:"),
        ("guard left out", "if not a:", "if False:"),
        ("statement left out", "b.sort(reverse=True)", "pass"),
        ("statement left out", "b[0] += 1", "pass"),
        ("other truth", "reverse=True", "reverse=False"),
        ("await left out", "return await other(b)", "return other(b)"),
        ("other return value", "return await other(b)", "return []"),
    ],
)
def test_each_operator(operator: str, before: str, after: str) -> None:
    changed = [
        (each.before, each.after)
        for each in candidates("mcp_app/some.py", MODULE)
        if each.operator == operator and compiles(MODULE, each)
    ]
    assert [
        pair for pair in changed if pair[0].replace(before, after, 1) == pair[1]
    ] != []


def test_the_faults_of_a_module_are_of_one_line_each() -> None:
    faults = candidates("mcp_app/some.py", MODULE)
    assert len(faults) == len({(each.line, each.after) for each in faults}) == 16
    for each in faults:
        changed = planted(MODULE, each)
        assert changed is not None
        pairs = zip(MODULE.split("\n"), changed.split("\n"), strict=True)
        assert [a != b for a, b in pairs].count(True) == 1


def test_texts_logs_and_annotations_are_left_alone() -> None:
    assert candidates("mcp_app/some.py", LEFT_ALONE) == []


def test_letters_of_several_bytes_stand_before_a_fault() -> None:
    source = 'some("ä€😀", a and b)'
    afters = [each.after for each in candidates("mcp_app/some.py", source)]
    assert 'some("ä€😀", a or b)' in afters


def test_what_does_not_compile_is_no_fault() -> None:
    assert not compiles("a = 1\n", Fault("a.py", 1, "some", "a = 1", "a = ="))
    assert compiles("a = 1\n", Fault("a.py", 1, "some", "a = 1", "a = 2"))


@pytest.mark.parametrize(
    ("source", "line", "changed"),
    [
        ("a\nb\nc", 2, "a\nx\nc"),
        ("b", 1_000, "x"),
        ("a\nc", 1, None),
        ("b\nb", 1, None),
        ("b" + "\n" * (NEAR + 1) + "b", 1, "x" + "\n" * (NEAR + 1) + "b"),
    ],
)
def test_where_a_fault_applies(source: str, line: int, changed: str | None) -> None:
    assert planted(source, Fault("a.py", line, "some", "b", "x")) == changed


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    faults = [Fault("mcp_app/a.py", 3, "one off", "    a = 1", "    a = 2")]
    write(tmp_path / "there" / "list.jsonl", faults)
    assert read(tmp_path / "there" / "list.jsonl") == faults


def test_a_list_by_somebody_else_has_three_members(tmp_path: Path) -> None:
    (tmp_path / "list").write_text('{"file": "a.py", "before": "a", "after": "b"}\n')
    assert read(tmp_path / "list") == [Fault("a.py", 0, "as listed", "a", "b")]


@pytest.mark.parametrize("path", ["/etc/hosts", "../other/a.py"])
def test_a_list_names_no_file_outside_the_checkout(path: str, tmp_path: Path) -> None:
    write(tmp_path / "list", [Fault(path, 1, "one off", "a", "b")])
    with pytest.raises(ValueError, match="is no path from the root"):
        read(tmp_path / "list")


# -- drawing ------------------------------------------------------------------------

ROOMS = (*WEIGHTY, "kinds", "streams")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in (*(f"{each}/some.py" for each in ROOMS), "conf.py", "asgi.py"):
        path = tmp_path / "mcp_app" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE)
    migrations = tmp_path / "mcp_app" / "migrations"
    migrations.mkdir()
    (migrations / "some.py").write_text(MODULE)
    return tmp_path


def test_a_seed_draws_the_same_again(tree: Path) -> None:
    assert drawn(tree, 1, 12) == drawn(tree, 1, 12)
    assert drawn(tree, 1, 12) != drawn(tree, 2, 12)


def test_half_are_in_weighty_rooms_and_each_room_has_one(tree: Path) -> None:
    faults = drawn(tree, 3, 12)
    assert [each.room in WEIGHTY for each in faults] == [True] * 6 + [False] * 6
    assert {each.room for each in faults} == {*ROOMS, "conf", "top"}


def test_rooms_can_be_named(tree: Path) -> None:
    assert {each.room for each in drawn(tree, 1, 6, ["kinds", "auth"])} == {
        *("auth", "kinds"),
    }
    with pytest.raises(ValueError, match="No fault can be in migrations, odd: "):
        drawn(tree, 1, 6, ["kinds", "odd", "migrations"])


def test_no_operator_outnumbers_the_others_and_no_line_has_two(tree: Path) -> None:
    faults = drawn(tree, 1, 6, ["kinds"])
    assert len({each.operator for each in faults}) >= 5
    assert len({each.line for each in faults}) == len(faults)


def test_of_each_room_one_fault_is_planted(tree: Path) -> None:
    some, other, gone = (
        Fault(f"mcp_app/{name}/some.py", 7, "one off", before, "    b[1] += 1")
        for name, before in (
            *(("kinds", "    b[0] += 1"), ("kinds", "    b.sort(reverse=True)")),
            ("auth", "    b[9] += 1"),
        )
    )
    assert [
        became.partition(":")[0] for _, became in plant(tree, [some, other, gone])
    ] == [
        *("planted", "left out", "does not apply any more"),
    ]
    assert (tree / some.file).read_text() == planted(MODULE, some)
    assert (tree / gone.file).read_text() == MODULE


def test_the_faults_before_can_be_read() -> None:
    faults = read(ROOT / "tests/suite/faults/before.jsonl")
    assert len(faults) == len(set(faults)) == 30
    assert sum(each.room in WEIGHTY for each in faults) == 15


# -- judging ------------------------------------------------------------------------

TESTED = """
import time

def smaller(a, b):
    return a < b

def waited(some):
    if some:
        return
    time.sleep(60)

def idle():
    return 7
"""
TESTS = """
from tree_under_test.some import smaller, waited

def test_broken():
    assert False

def test_smaller():
    assert not smaller(1, 1)

def test_waited():
    waited(True)
"""


@pytest.fixture
def stop() -> Event:
    return Event()


@pytest.fixture
def copy(tmp_path: Path, stop: Event) -> Copy:
    """A copy of a tree with one module; a test and a module of tests fail anyway."""
    root = tmp_path / "root"
    for name, text in {
        "tree_under_test/__init__.py": "",
        "tree_under_test/some.py": TESTED,
        "tests/test_first.py": "def test_it():\n    pass\n",
        "tests/test_gone.py": "import gone\n",
        "tests/test_some.py": TESTS,
        "pyproject.toml": '[tool.pytest]\npythonpath = ["."]\n',
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return Copy(root, tmp_path, stop)


STEPS = [
    Step("mirror", ("tests/test_first.py",)),
    Step("tests", ("tests/test_gone.py", "tests/test_some.py")),
]


@pytest.mark.long
def test_a_fault_is_caught_by_a_test_that_passes_without_it(copy: Copy) -> None:
    fault = Fault("tree_under_test/some.py", 5, "", "    return a < b", "    return 1")
    verdict = copy.judge(fault, STEPS)
    caught = "tests/test_some.py::test_smaller"
    assert (verdict.outcome, verdict.test) == ("caught", caught)
    assert 0 < verdict.seconds < 60
    assert verdict.as_json()["file"] == fault.file
    assert f"caught by {caught}" in str(verdict)
    # The next one is judged without it.
    fault = Fault("tree_under_test/some.py", 12, "", "    return 7", "    return 8")
    assert copy.judge(fault, STEPS).outcome == "survived"


@pytest.mark.long
def test_a_test_that_hangs_catches_a_fault(
    copy: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "HANGS_S", 2)
    fault = Fault("tree_under_test/some.py", 8, "", "    if some:", "    if False:")
    verdict = copy.judge(fault, STEPS)
    assert (verdict.outcome, verdict.test) == (
        "hang",
        "tests/test_some.py::test_waited",
    )


def test_who_ends_it_ends_the_tests(copy: Copy, stop: Event) -> None:
    stop.set()
    fault = Fault("tree_under_test/some.py", 8, "", "    if some:", "    if False:")
    with pytest.raises(Stopped):
        copy.judge(fault, STEPS)
    assert (copy.root / fault.file).read_text() == TESTED


def test_a_fault_that_does_not_apply_runs_nothing(copy: Copy) -> None:
    verdict = copy.judge(Fault("tree_under_test/some.py", 5, "", "no", "yes"), STEPS)
    assert (verdict.outcome, verdict.seconds) == ("does not apply", 0)


@pytest.mark.parametrize(
    ("output", "test"),
    [
        ("tests/a.py::test_a PASSED [ 5%]\ntests/a.py::test_b ", "tests/a.py::test_b"),
        ("tests/a.py::test_a[a b] PASSED [ 5%]\n", "tests/a.py::test_a[a b]"),
        ("tests/a.py::test_a Timeout (0:04:00)!\n  File", "tests/a.py::test_a"),
        ("FAILED tests/a.py::test_a[a b] - no - no", "tests/a.py::test_a[a b]"),
        ("ERROR tests/a.py - SyntaxError\n1 error", "tests/a.py"),
        ("some\nImportError: no", "ImportError: no"),
    ],
)
def test_which_test_has_found_it(output: str, test: str) -> None:
    assert named(Ended(1, output, 1.0)) == test


def test_the_mirror_runs_alone_and_then_its_room_and_then_more_together() -> None:
    steps = [Step(name, (f"{name}/test_a.py",)) for name in "abcdef"]
    assert [len(each) for each in stages(steps)] == [1, 1, 4]
    assert stages([]) == []


def test_what_is_near() -> None:
    steps = [
        *(Step(name, ()) for name in ("mirror", "tests/admin/calls", "tests/admin")),
        *(Step(name, ()) for name in ("tests/administration", "tests")),
    ]
    fault = Fault("mcp_app/admin/calls/log.py", 1, "", "a", "b")
    assert near(fault, steps) == steps[:3]
    assert near(Fault("mcp_app/conf.py", 1, "", "a", "b"), steps) == steps[:1]
