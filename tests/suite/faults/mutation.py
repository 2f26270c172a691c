"""The faults of one line that a module can have, by an operator each.

No texts, log calls, annotations, decorators, docstrings, `__all__` and `__repr__`: what
changes there is seen by nobody, or by people only.
"""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.suite.faults.listing import Fault, planted

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Place: TypeAlias = tuple[int, int]
"""A line, from 1, and a column in characters."""

BOUNDARIES: Final = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
JOINED: Final = {"and": "or", "or": "and"}
LOGGING: Final = frozenset({"_logger", "logger", "logging", "warnings"})
DECLARING: Final = frozenset(
    {"annotation", "bases", "decorator_list", "keywords", "returns"}
)
"""Parts of functions, classes and assignments that do nothing themselves."""
EMPTY: Final = {
    "bool": "False",
    "bytes": 'b""',
    "dict": "{}",
    "frozenset": "frozenset()",
    "int": "0",
    "list": "[]",
    "set": "set()",
    "str": '""',
    "tuple": "()",
}
"""What a function returns instead, by its annotation; else None."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What stands between two places of a line instead."""

    begin: Place
    end: Place
    text: str


class Source:
    """A module, and where its nodes stand."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.tree = ast.parse(text)
        self._tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))

    def begin(self, node: ast.expr | ast.stmt) -> Place:
        return self._place(node.lineno, node.col_offset)

    def end(self, node: ast.expr | ast.stmt) -> Place:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.end_lineno, node.end_col_offset)

    def between(self, left: ast.expr, right: ast.expr) -> Iterator[tuple[Edit, str]]:
        """Yield the operators between two operands, to be replaced by themselves."""
        first = bisect_left(self._tokens, self.end(left), key=lambda each: each.start)
        after = bisect_left(
            self._tokens, self.begin(right), key=lambda each: each.start
        )
        for token in self._tokens[first:after]:
            yield Edit(token.start, token.end, token.string), token.string

    def whole(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Return what puts the text in a node's place."""
        return Edit(self.begin(node), self.end(node), text)

    def written(self, node: ast.expr) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def _place(self, line: int, column: int) -> Place:
        # The columns of nodes are bytes.
        return line, len(self.lines[line - 1].encode()[:column].decode())


Operator: TypeAlias = Callable[[ast.AST, "Source", "Function | None"], Iterator[Edit]]


def candidates(file: str, text: str) -> list[Fault]:
    """Return each fault that the module can have."""
    source = Source(text)
    return [
        fault
        for node, function in _nodes(source.tree, None)
        for name, operator in OPERATORS.items()
        for edit in operator(node, source, function)
        for fault in _faults(file, name, edit, source)
    ]


def _faults(file: str, name: str, edit: Edit, source: Source) -> Iterator[Fault]:
    (line, begin), (last, end) = edit.begin, edit.end
    before = source.lines[line - 1]
    after = before[:begin] + edit.text + before[end:]
    if line == last and before != after:
        yield Fault(file, line, name, before, after)


def compiles(source: str, fault: Fault) -> bool:
    """Whether the fault applies to its module, and leaves one that Python reads."""
    if (changed := planted(source, fault)) is None:
        return False
    try:
        compile(changed, fault.file, "exec")
    except SyntaxError:
        return False
    return True


# -- where faults may be ------------------------------------------------------------


def _nodes(
    node: ast.AST, function: Function | None
) -> Iterator[tuple[ast.AST, Function | None]]:
    """Yield each node that counts, and the function in which it stands."""
    if _is_left_alone(node):
        return
    yield node, function
    within = node if isinstance(node, Function) else function
    for name, value in ast.iter_fields(node):
        # The keywords of a call are values as others are.
        if name in DECLARING and not isinstance(node, ast.Call):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _nodes(each, within)


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case (
            ast.JoinedStr()
            | ast.FunctionDef(name="__repr__" | "__str__")
            | ast.If(test=ast.Name(id="TYPE_CHECKING"))
            | ast.Assign(targets=[ast.Name(id="__all__")])
            | ast.AnnAssign(annotation=ast.Name(id="TypeAlias"))
        ):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in LOGGING
    return False


# -- the operators ------------------------------------------------------------------


def _negated(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    conditions: list[ast.expr] = []
    if isinstance(node, ast.If | ast.IfExp):
        conditions = [node.test]
    elif isinstance(node, ast.comprehension):
        conditions = node.ifs
    for each in conditions:
        if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not):
            yield source.whole(each, f"({source.written(each.operand)})")
        else:
            yield source.whole(each, f"(not ({source.written(each)}))")


def _joined(node: ast.AST, source: Source, function: Function | None) -> Iterator[Edit]:
    if isinstance(node, ast.BoolOp):
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from _replaced(source, left, right, JOINED)


def _bounded(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    if isinstance(node, ast.Compare):
        for left, right in zip(
            [node.left, *node.comparators], node.comparators, strict=False
        ):
            yield from _replaced(source, left, right, BOUNDARIES)


def _replaced(
    source: Source, left: ast.expr, right: ast.expr, others: dict[str, str]
) -> Iterator[Edit]:
    for edit, operator in source.between(left, right):
        if operator in others:
            yield Edit(edit.begin, edit.end, others[operator])


def _left_out(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    match node:
        case (
            ast.Expr(value=ast.Call() | ast.Await())
            | ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_])
            | ast.AugAssign()
            | ast.Delete()
        ):
            yield source.whole(node, "pass")


def _unguarded(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    match node:
        case ast.If(test=test, body=[ast.Raise() | ast.Return()], orelse=[]):
            yield source.whole(test, "False")


def _not_awaited(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    if isinstance(node, ast.Await):
        yield Edit(source.begin(node), source.begin(node.value), "")


def _one_off(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield source.whole(node, str(node.value + 1))


def _otherwise(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield source.whole(node, str(not node.value))


def _returned(
    node: ast.AST, source: Source, function: Function | None
) -> Iterator[Edit]:
    if not (isinstance(node, ast.Return) and function and node.value):
        return
    if isinstance(node.value, ast.Constant):
        return
    kind = ast.unparse(function.returns) if function.returns else ""
    yield source.whole(node, f"return {EMPTY.get(kind.partition('[')[0], 'None')}")


OPERATORS: Final[dict[str, Operator]] = {
    "condition negated": _negated,
    "and for or": _joined,
    "boundary": _bounded,
    "statement left out": _left_out,
    "guard left out": _unguarded,
    "await left out": _not_awaited,
    "one off": _one_off,
    "other truth": _otherwise,
    "other return value": _returned,
}
