"""Which modules have a mark, as their source says: nothing is imported."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def marked_modules(folder: Path, mark: str) -> tuple[Path, ...]:
    """Return the modules below a folder that name `pytest.mark.<mark>`, sorted."""
    return tuple(path for path in sorted(folder.rglob("*.py")) if _names(path, mark))


def _names(path: Path, mark: str) -> bool:
    source = path.read_text(encoding="utf-8")
    # To read the tree of each module takes seconds.
    return mark in source and any(
        ast.unparse(node) == f"pytest.mark.{mark}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
    )
