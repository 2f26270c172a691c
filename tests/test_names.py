"""Modules, classes, functions and types are nouns or verbs, not participles.

`Asked` or `kept` says neither whether it is a value, an event or a predicate, nor of
what.  A name may end with one where a noun stands before it in an exception
(`CallCancelled`), where it answers yes or no, or where the specification, HTTP or
Django has the word.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import mcp_app

PACKAGE: Final = Path(mcp_app.__file__).parent
IRREGULAR: Final = frozenset(
    [
        "begun",
        "bound",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "driven",
        "each",
        "eaten",
        "fallen",
        "felt",
        "forgotten",
        "found",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "left",
        "lost",
        "made",
        "meant",
        "met",
        "overtaken",
        "paid",
        "read_",
        "said",
        "seen",
        "sent",
        "set_",
        "shown",
        "sold",
        "sought",
        "spent",
        "split_",
        "spoken",
        "stood",
        "stolen",
        "struck",
        "taken",
        "thought",
        "thrown",
        "told",
        "torn",
        "understood",
        "won",
        "written",
    ]
)
NO_PARTICIPLES: Final = frozenset({"feed", "need", "seed", "speed"})
VERBS: Final = re.compile(r"(is|has|may|row_is|check|count|touch|is_left)_")
WORDS_OF_OTHERS: Final = {
    # The specification's.
    "Accepted": "the action accept of an elicitation",
    "Declined": "the action decline of an elicitation",
    "Cancelled": "the action cancel of an elicitation",
    "input_required": "InputRequiredResult",
    # HTTP's.
    "not_found": "404",
    "unauthenticated": "401",
    # Django's, for signals, exceptions and actions of the admin.
    "Deleted": "an Http404 for a row",
    "publish_chosen": "an action",
    "unpublish_chosen": "an action",
    "stop_chosen": "an action",
    "start_chosen": "an action",
    "export_chosen": "an action",
    "copy_chosen": "an action",
    "end_chosen": "an action",
    # What `mcp_app` offers under this name.
    "changed": "tells clients of a change",
    "achanged": "does so in async code",
}


def is_participle(word: str) -> bool:
    return word in IRREGULAR or (word.endswith("ed") and word not in NO_PARTICIPLES)


def words(name: str) -> list[str]:
    parts = name.strip("_").split("_")
    if len(parts) == 1 and name[:1].isupper():
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name)
    return [each.lower() for each in parts if each]


def ends_with_one(name: str) -> bool:
    return name not in WORDS_OF_OTHERS and is_participle(words(name)[-1])


def names_of(tree: ast.Module) -> Iterator[str]:
    """Yield the public classes and functions that are named by a participle."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            is_exception = len(words(node.name)) > 1 and raises(node)
            if ends_with_one(node.name) and not is_exception:
                yield node.name
            yield from methods_of(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_named_so = is_public(node.name) and ends_with_one(node.name)
            if is_named_so and not VERBS.match(node.name) and not answers_yes(node):
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            yield from types_of(node)


def types_of(node: ast.Assign | ast.AnnAssign) -> Iterator[str]:
    """Yield the names of type aliases and variables that are participles."""
    says = ast.unparse(node.annotation if isinstance(node, ast.AnnAssign) else node)
    if "TypeAlias" in says or "TypeVar(" in says:
        targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
        yield from filter(ends_with_one, map(ast.unparse, targets))


METHODS: Final = frozenset(
    [
        "each",
        "said",
        "found",
        "given",
        "asked",
        "kept",
        "made",
        "told",
        "shown",
        "judged",
    ]
)


def methods_of(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        match each:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                if name in METHODS:
                    yield f"{node.name}.{name}"


def is_public(name: str) -> bool:
    return not name.startswith("_")


def raises(node: ast.ClassDef) -> bool:
    """Whether it is an exception, as far as its bases say."""
    bases = " ".join(ast.unparse(each) for each in node.bases)
    ends = "Exception|Error|Http404|Refused|Configured|Unusable|Invalid"
    return re.search(ends, bases) is not None


def answers_yes(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return node.returns is not None and ast.unparse(node.returns) == "bool"


def found_in(folder: Path) -> list[str]:
    found = []
    for path in sorted(folder.rglob("*.py")):
        where = str(path.relative_to(folder))
        if "migrations" in path.parts:
            continue
        if path.stem != "__init__" and ends_with_one(path.stem):
            found.append(where)
        found += [f"{where}: {name}" for name in names_of(ast.parse(path.read_text()))]
    return found


def test_nothing_is_named_by_a_participle() -> None:
    assert found_in(PACKAGE) == []


def test_what_is_found(tmp_path: Path) -> None:
    """Each rule finds what breaks it, and no more."""
    (tmp_path / "stored.py").write_text("")
    (tmp_path / "rows.py").write_text(
        "class Asked: ...\n"
        "class RegisteredFunction: ...\n"
        "class CallRefused(Exception):\n    def told(self): ...\n"
        "class Refused(Exception): ...\n"
        "class _Held: ...\n"
        "def opened(): ...\n"
        "def _kept(): ...\n"
        "def finished() -> bool: ...\n"
        "def is_stopped(): ...\n"
        "def feed(): ...\n"
        "Said: TypeAlias = str\n"
        "Made = TypeVar('Made')\n"
        "Label: TypeAlias = str\n"
        "KEPT = 1\n"
    )
    assert found_in(tmp_path) == [
        *("rows.py: Asked", "rows.py: CallRefused.told", "rows.py: Refused"),
        *("rows.py: _Held", "rows.py: opened", "rows.py: Said", "rows.py: Made"),
        "stored.py",
    ]
