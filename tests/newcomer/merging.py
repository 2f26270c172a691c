"""Puts a block of README.md into a file, as a person would who reads `# ...`.

A list that holds the line `# ...` keeps what the file has, between what the block has
before and after that line.  Another assignment takes the place of the file's, or goes
to its end.  Imports go below the file's docstring.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

WHAT_IS_THERE = "# ..."


def merged(file: str, block: str) -> str:
    for statement in ast.parse(block).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            file = _below_docstring(file, _source(block, statement))
        elif isinstance(statement, ast.Assign):
            file = _assigned(file, block, statement)
        else:
            raise ValueError(f"Where does this go? {_source(block, statement)}")
    return file


def _source(text: str, node: ast.AST) -> str:
    return ast.get_source_segment(text, node) or ""


def _below_docstring(file: str, line: str) -> str:
    module = ast.parse(file)
    first = module.body[1 if ast.get_docstring(module) else 0]
    lines = file.splitlines()
    return "\n".join([*lines[: first.lineno - 1], line, *lines[first.lineno - 1 :], ""])


def _assigned(file: str, block: str, new: ast.Assign) -> str:
    name = ast.unparse(new.targets[0])
    old = _assignment(file, name)
    if old is None:
        return f"{file}\n{_source(block, new)}\n"
    source = _source(block, new)
    if WHAT_IS_THERE in source:
        source = f"{name} = {_list(source, _items(_source(file, old.value)))}"
    return file.replace(_source(file, old), source)


def _assignment(file: str, name: str) -> ast.Assign | None:
    for statement in ast.parse(file).body:
        if (
            isinstance(statement, ast.Assign)
            and ast.unparse(statement.targets[0]) == name
        ):
            return statement
    return None


def _list(new: str, there: list[str]) -> str:
    before, after = map(_items, _halves(new))
    kept = [item for item in there if item not in {*before, *after}]
    return "[\n" + "".join(f"    {item},\n" for item in [*before, *kept, *after]) + "]"


def _halves(new: str) -> Iterable[str]:
    before, after = new.split(WHAT_IS_THERE)
    return f"{before[before.index('[') :]}]", f"[{after}"


def _items(source: str) -> list[str]:
    items = ast.parse(source.strip(), mode="eval").body
    if not isinstance(items, ast.List):
        raise ValueError(f"This is no list: {source}")
    return [ast.unparse(item) for item in items.elts]
