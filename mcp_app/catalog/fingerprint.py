"""The digest of what code declares: two processes that differ run different code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from types import CodeType
from typing import Any

from mcp_app.catalog.callables import layers_of
from mcp_app.catalog.registered_function import Declaration, RegisteredFunction
from mcp_app.catalog.registry import Registry
from mcp_app.protocol import jsonrpc

_SCALARS = (str, int, float, type(None))


def fingerprint(registry: Registry) -> str:
    """Return the digest of all that code declares, and of the functions behind it.

    What these functions call is not in it.
    """
    return sha256(jsonrpc.canonical(sorted(_lines(registry), key=str))).hexdigest()


def _lines(registry: Registry) -> Iterator[object]:
    for name, declared in vars(registry).items():
        for key, each in declared.items():
            if isinstance(each, Declaration):
                yield [name, key, _plain(each.definition), _code(each.function)]
            elif isinstance(each, RegisteredFunction):
                yield [name, _plain(key), _code(each)]


def _code(function: RegisteredFunction) -> object:
    codes = [getattr(each, "__code__", None) for each in layers_of(function.function)]
    return [function.qualified_name, *map(_plain, codes)]


def _plain(value: Any) -> object:
    """Return what is the same in every process that runs the same code."""
    if isinstance(value, _SCALARS):
        return repr(value)
    parts = _parts(value)
    if isinstance(value, Mapping | set | frozenset):
        return sorted(map(_plain, parts), key=str)
    return [type(value).__qualname__, *map(_plain, parts)]


def _parts(value: Any) -> Iterable[object]:
    """Return what a value is made of; nothing where only its type can be told."""
    if isinstance(value, CodeType):
        return value.co_code.hex(), value.co_names, value.co_consts
    if isinstance(value, Mapping):
        return value.items()
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, each.name) for each in fields(value)]
    return value if isinstance(value, list | tuple | set | frozenset) else ()
