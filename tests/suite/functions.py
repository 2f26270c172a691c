"""Whether each test function of an older commit is still there.

    python -m tests.suite.functions REVISION

Each must run in `make test` or in `make test-all`, or stand in tests/suite/merged.csv,
which says into which test it went, and why.  A module that was moved is followed.
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.suite.rooms import ROOT

MERGED: Final = ROOT / "tests" / "suite" / "merged.csv"
BEGINNINGS: Final = ("test_", "on_")
"""How the names of modules begin whose tests pytest runs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ids of the functions of the older commit, by what became of them."""

    test: list[str] = field(default_factory=list)
    test_all: list[str] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def functions(sources: Mapping[str, str]) -> dict[str, bool]:
    """Return the ids of all test functions; the value says whether all cases are long.

    `sources` has the text of modules by their paths.
    """
    listed: dict[str, bool] = {}
    for path, source in sources.items():
        module = ast.parse(source)
        for name, is_long in _functions(module.body, _module_is_long(module)):
            listed[f"{path}::{name}"] = is_long
    return listed


def compare(
    before: Mapping[str, bool],
    now: Mapping[str, bool],
    moved: Mapping[str, str],
    merged: Mapping[str, str],
) -> Comparison:
    """Compare the functions of two commits.

    `moved` has the new paths of modules, `merged` the tests that took others in.
    """
    comparison = Comparison()
    for test in before:
        path, _, name = test.partition("::")
        at = next(
            (each for each in (test, f"{moved.get(path)}::{name}") if each in now), None
        )
        if at is not None:
            (comparison.test_all if now[at] else comparison.test).append(test)
        elif merged.get(test) in now:
            comparison.merged.append(test)
        else:
            comparison.missing.append(test)
    return comparison


def _functions(body: list[ast.stmt], is_long: bool) -> Iterator[tuple[str, bool]]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.name.startswith("test"):
                    yield node.name, is_long or _is_long(node.decorator_list)
            case ast.ClassDef(name=name, body=inner):
                own = is_long or _is_long(node.decorator_list)
                yield from (
                    (f"{name}::{n}", each) for n, each in _functions(inner, own)
                )


def _module_is_long(module: ast.Module) -> bool:
    return any(
        _is_long([node.value])
        for node in module.body
        if isinstance(node, ast.Assign)
        and any(
            isinstance(each, ast.Name) and each.id == "pytestmark"
            for each in node.targets
        )
    )


def _is_long(marks: list[ast.expr]) -> bool:
    """Whether one of these marks, or of a list of them, is `pytest.mark.long`."""
    return any(
        isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.long"
        for mark in marks
        for node in ([mark, *mark.elts] if isinstance(mark, ast.List) else [mark])
    )


def _sources_now() -> dict[str, str]:
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path.name.startswith(BEGINNINGS)
    }


def _sources_of(revision: str) -> dict[str, str]:
    archive = io.BytesIO(_git("archive", "--format=tar", revision, "tests"))
    with tarfile.open(fileobj=archive) as tar:
        return {
            member.name: content.read().decode()
            for member in tar
            if Path(member.name).name.startswith(BEGINNINGS)
            and member.name.endswith(".py")
            and (content := tar.extractfile(member)) is not None
        }


def _moved_since(revision: str) -> dict[str, str]:
    changes = _git(
        "diff", "-M40%", "--diff-filter=R", "--name-status", revision, "--", "tests"
    )
    return dict(line.split("\t")[1:3] for line in changes.decode().splitlines())


def _git(*arguments: str) -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout


def merged_tests(path: Path = MERGED) -> dict[str, str]:
    """Return the tests that are gone, with those that took them in."""
    with path.open(encoding="utf-8", newline="") as file:
        return {row["test"]: row["into"] for row in csv.DictReader(file)}


def main() -> int:
    """Print the counts and what is missing; return 1 if anything is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision")
    revision = parser.parse_args().revision
    comparison = compare(
        functions(_sources_of(revision)),
        functions(_sources_now()),
        _moved_since(revision),
        merged_tests(),
    )
    sys.stdout.write(
        f"make test {len(comparison.test)}, make test-all alone"
        f" {len(comparison.test_all)}, merged {len(comparison.merged)},"
        f" missing {len(comparison.missing)}\n"
    )
    for test in comparison.missing:
        sys.stdout.write(f"  {test}\n")
    return int(bool(comparison.missing))


if __name__ == "__main__":
    sys.exit(main())
