"""A name in backticks, in a docstring or a comment of the product, exists."""

from __future__ import annotations

import builtins
import re
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import Final

import django
from channels import routing
from django.conf import global_settings

ROOT: Final = Path(__file__).parents[1]
NAME: Final = re.compile(r"(?<!`)`@?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\([^`]*\))?`")
DOCUMENTS: Final = ("docs/toolsets.md", "docs/security.md", "docs/deploy/proxies.md")
OTHERS: Final = """
    after_0 after_1 changelog.mdx customer_country_name DetailedTask grant__code__in
    jsonb listPets list_pets question_1 request.mcp result.is_error tokenizer wbits
    u7528_u6237
"""
known = {*dir(builtins), *dir(global_settings), *dir(routing), "pytest"}
owned: Final = defaultdict[str, set[str]](set)
"""What stands in a module, by each end of its path, and beside a class."""


def read_module(file: Path) -> dict[str, str]:
    """Learn the names of a module; return those in backticks by where they stand."""
    ticked, names = dict[str, str](), set[str]()
    path = file.relative_to(ROOT).as_posix()[:-3].removesuffix("/__init__").split("/")
    owners = re.findall(r"(?m)^ *class (\w+)", file.read_text("utf-8"))
    with tokenize.open(file) as lines:
        for kind, text, (row, at), _, line in tokenize.generate_tokens(lines.readline):
            if kind == tokenize.COMMENT or line[:at].strip() + text[:3] == '"""':
                ticked |= {f"{file}:{row} {each}": each for each in NAME.findall(text)}
            else:
                known.update(re.findall(r"\w+", text))
                names.add(text)
    known.update(path)
    for owner in (*owners, *(".".join(path[start:]) for start in range(len(path)))):
        owned[owner] |= names
    return ticked


def is_stale(name: str) -> bool:
    if name in owned or name in OTHERS.split():
        return False
    owner, _, last = name.rpartition(".")
    return last not in owned.get(owner, known) or (owner != "" and is_stale(owner))


def test_a_name_in_backticks_exists() -> None:
    for file in (*map(ROOT.joinpath, DOCUMENTS), *ROOT.glob("tests/wire/**/*.json")):
        known.update(re.findall(r"\w+", file.read_text("utf-8")))
    for file in Path(django.__path__[0]).rglob("*.py"):
        known.update(re.findall(r"(?:def|class) (\w+)", file.read_text("utf-8")))
    ticked = [read_module(file) for file in ROOT.glob("mcp_app/**/*.py")]
    assert [where for each in ticked for where in each if is_stale(each[where])] == []
