"""Finds the names that a view reads from its request, by the view's source code."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from textwrap import dedent
from typing import Any, Final

_READS: Final = re.compile(
    r"\brequest\.(GET|query_params|POST|FILES)\b(?:(?:\.get(?:list)?\(|\[)'([^']*)')?"
)
_FRAMEWORKS: Final = frozenset({"rest_framework", "django_filters"})
"""Packages whose functions drf-spectacular describes itself."""


def read_names(functions: Iterable[Any]) -> Mapping[str, Set[str]]:
    """Return the names that functions read of `GET`, `POST` and `FILES` of a request.

    If the source reads a name that it does not spell out, "" is among the names.
    """
    reads = defaultdict[str, set[str]](set)
    for each in functions:
        # A function without source code reads no names that are known.
        with suppress(Exception):
            inner = inspect.unwrap(each)
            # For `api_view`, take the function that it wraps.
            function = inspect.getclosurevars(inner).nonlocals.get("func", inner)
            if function.__module__.partition(".")[0] not in _FRAMEWORKS:
                tree: Any
                [tree] = ast.parse(dedent(inspect.getsource(function))).body
                # No docstring; `unparse` drops comments and writes one kind of quotes.
                body = tree.body[ast.get_docstring(tree) is not None :]
                for member, name in _READS.findall("\n".join(map(ast.unparse, body))):
                    reads["GET" if member == "query_params" else member].add(name)
    return reads
