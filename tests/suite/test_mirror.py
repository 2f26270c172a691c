"""Each module of the product has its test module, or a line that names its test.

The test module stands in the same folder under tests/ and is called `test_<module>.py`;
that of a package is `test_init.py`.  A line of mirror.csv names a test elsewhere that
fails where the module is wrong.
"""

from __future__ import annotations

import ast
import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
LIST: Final = ROOT / "tests/suite/mirror.csv"
MIRRORS: Final = {"mcp_app": "tests", "mcp_project": "tests/project"}
"""The folders of the product, and where their tests are."""

Line = Mapping[str, str]


def modules(root: Path) -> Iterator[str]:
    """Yield the modules that need a test, by their paths."""
    for folder in MIRRORS:
        for path in sorted((root / folder).rglob("*.py")):
            is_package = path.name == "__init__.py"
            if "migrations" in path.parts or (is_package and not has_code(path)):
                continue
            yield path.relative_to(root).as_posix()


def has_code(path: Path) -> bool:
    """Whether a package does more than to import names and to list them."""
    return not all(map(_only_names, ast.parse(path.read_text()).body))


def _only_names(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(ast.Constant()):
            return True
        case ast.Assign([ast.Name("__all__")]):
            return True
    return False


def own_test(module: str) -> str:
    """Return the path of a module's test module."""
    path = Path(module)
    folder, *parts = path.parts[:-1]
    return Path(MIRRORS[folder], *parts, f"test_{path.stem.strip('_')}.py").as_posix()


def named_tests(path: Path) -> set[str]:
    """Return the tests of a file, as pytest names them behind the first `::`."""
    if not path.is_file():
        return set()
    body = ast.parse(path.read_text()).body
    found = set(_tests_in(body))
    for each in body:
        if isinstance(each, ast.ClassDef):
            found |= {f"{each.name}::{name}" for name in _tests_in(each.body)}
    return found


def _tests_in(body: Sequence[ast.stmt]) -> Iterator[str]:
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    names = (each.name for each in body if isinstance(each, functions))
    yield from (name for name in names if name.startswith("test_"))


def faults(root: Path, lines: Sequence[Line]) -> list[str]:
    """Return a sentence for each module without a test, and each line too many."""
    needed = {each: own_test(each) for each in modules(root)}
    having = {each for each, test in needed.items() if named_tests(root / test)}
    listed = Counter(each["module"] for each in lines)
    found = [
        f"{each} has neither {needed[each]} nor a line in {LIST.name}"
        for each in needed
        if each not in having and each not in listed
    ]
    found += [f"{each} has two lines" for each, count in listed.items() if count > 1]
    for each in lines:
        module = each["module"]
        if module not in needed:
            found.append(f"{module} is no module that needs a test")
        elif module in having:
            found.append(f"{module} has {needed[module]}: its line can go")
        file, _, name = each["test"].partition("::")
        if name not in named_tests(root / file):
            found.append(f"{module}: there is no test {each['test']}")
        if not each["reason"].strip():
            found.append(f"{module}: say why the test shows it")
    return found


def test_each_module_has_its_test() -> None:
    with LIST.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    found = faults(ROOT, lines)
    assert not found, "\n".join(found)


# -- what it finds -----------------------------------------------------------------

GOOD: Final = {
    "module": "mcp_app/admin/looks.py",
    "test": "tests/admin/test_page.py::test_looks",
    "reason": "draws it",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A product of two modules: the one has its test module, the other a line."""
    files = {
        "mcp_app/__init__.py": '"""Names."""\nfrom a import b\n__all__ = ["b"]\n',
        "mcp_app/names.py": "",
        "mcp_app/admin/looks.py": "LOOKS = 1\n",
        "mcp_app/migrations/0001_initial.py": "",
        "mcp_project/__init__.py": "",
        "tests/test_names.py": "async def test_a_name() -> None: ...\n",
        "tests/admin/test_page.py": (
            "def looks() -> None: ...\ndef test_looks() -> None: ...\n"
            "class TestPage:\n    def test_more(self) -> None: ...\n"
        ),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_tree_without_faults(tree: Path) -> None:
    assert faults(tree, [GOOD]) == []
    assert (
        faults(
            tree, [{**GOOD, "test": "tests/admin/test_page.py::TestPage::test_more"}]
        )
        == []
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "looks.py has neither tests/admin/test_looks.py nor a line in mirror"),
        ([GOOD, GOOD], "looks.py has two lines"),
        ([GOOD, {**GOOD, "module": "mcp_app/gone.py"}], "is no module that needs"),
        ([GOOD, {**GOOD, "module": "mcp_app/__init__.py"}], "is no module that needs"),
        ([GOOD, {**GOOD, "module": "mcp_app/names.py"}], "its line can go"),
        ([{**GOOD, "test": "tests/admin/test_page.py::test_gone"}], "there is no test"),
        ([{**GOOD, "test": "tests/admin/test_page.py::looks"}], "there is no test"),
        ([{**GOOD, "test": "tests/admin/test_page.py"}], "there is no test"),
        ([{**GOOD, "test": "tests/admin/test_gone.py::test_a"}], "there is no test"),
        ([{**GOOD, "reason": " "}], "say why the test shows it"),
    ],
)
def test_a_wrong_line(tree: Path, lines: list[Line], said: str) -> None:
    (fault,) = faults(tree, lines)
    assert said in fault


@pytest.mark.parametrize(
    ("module", "test"),
    [
        ("mcp_project/new.py", "tests/project/test_new.py"),
        ("mcp_app/admin/_new.py", "tests/admin/test_new.py"),
        ("mcp_app/kinds/__init__.py", "tests/kinds/test_init.py"),
        ("mcp_app/asked/new.py", "tests/asked/test_new.py"),
    ],
)
def test_a_new_module_needs_a_test(tree: Path, module: str, test: str) -> None:
    path, mirror = tree / module, tree / test
    for each in (path, mirror):
        each.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("NEW = 1\n")
    mirror.write_text("def helper() -> None: ...\n")
    assert faults(tree, [GOOD]) == [
        f"{module} has neither {test} nor a line in mirror.csv"
    ]
    mirror.write_text("def test_new() -> None: ...\n")
    assert faults(tree, [GOOD]) == []
