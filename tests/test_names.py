"""Names of functions and values, private ones included, say what they do or hold."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FILES: Final = sorted(
    each for each in (ROOT / "mcp_app").rglob("*.py") if "migrations" not in each.parts
)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NO_PARTICIPLES: Final = words("need _need feed _feed seed embed prompt field _field")
OLD_INTERFACES: Final = words("""
    _chosen _erased _found _locked _numbered _written _committed _checked achanged aged
    cached cancelled changed committed ended expected expired finished gained held
    logged named numbered opened queued required seen settled sized stopped structured
    visited wanted watched
""")
"""Methods that several classes share, or that tests reach by their names."""
VAGUE: Final = words(
    "said found given named shown asked seen told kept made sent held taken news"
)
VAGUE_STILL: Final = words("""
    age_seen_ms asked asked_at calls_kept can_be_made events_kept found _found given
    given_up held
    kept kept_bytes kept_events kept_ms last_seen made made_with most_shown most_told
    named not_found said _said seen seen_before_ms seen_ms seen_ms__gte seen_ms__lt
    seen_ms__lte sent shown shown_identity shown_name shown_user statistics_kept
    steps_kept_ms streams_kept_ms _taken_by_others tasks_kept token__made_with told
""")
"""Columns, settings and members of templates, and what tests reach by their names."""


@cache
def nodes() -> list[tuple[Path, ast.AST]]:
    return [
        (file.relative_to(ROOT), node)
        for file in FILES
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
    ]


def test_a_function_is_no_participle() -> None:
    """A function that acts is a verb with its noun, one that answers is a noun."""
    exceptions = OLD_INTERFACES | NO_PARTICIPLES
    participles = [
        f"{file}:{node.lineno} {node.name}"
        for file, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and re.fullmatch(r"_?[a-z]+(ed|wn|pt|ade|een|eld|ound|ept)", node.name)
        and node.name not in exceptions
    ]
    assert participles == []


def test_no_name_has_a_word_that_says_nothing() -> None:
    """`found` is the noun of what it is, `said` a message, `news` changes."""
    vague = [
        f"{file}:{getattr(node, 'lineno', 0)} {name}"
        for file, node in nodes()
        for attribute in ("id", "arg", "attr", "name")
        if isinstance(name := getattr(node, attribute, None), str)
        and VAGUE.intersection(name.lower().split("_"))
        and name.lower() not in VAGUE_STILL
    ]
    assert vague == []
