"""A JSON Schema as a graph: where its subschemas are, and what checking can cost.

The validator has neither a step limit nor a time limit.  So both are computed here from
the schema alone: how many subschemas apply to one place of a value, and how much that
number grows from a value to its inner values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

from mcp_app.protocol.jsonrpc import Path

Schema: TypeAlias = Mapping[str, object]

EXPANSION = 100_000
"""The most subschemas for one place of a value, with references followed."""

DEEPEST_VALUE = 64
"""Levels for which growth is computed; the strict reader accepts no more."""

# Keywords that hold subschemas, by the place that these apply to.
_CONDITIONS = {"if", "then", "else", "dependentSchemas", "dependencies"}
_SAME_PLACE = _CONDITIONS | {"allOf", "anyOf", "oneOf", "not"}
_OTHER_MEMBERS = {"additionalProperties", "unevaluatedProperties"}
_MEMBERS = _OTHER_MEMBERS | {"patternProperties", "propertyNames"}
_ITEMS = {"items", "additionalItems", "unevaluatedItems", "contains"}
_DEFINITIONS = {"$defs", "definitions"}
_NOWHERE = _DEFINITIONS | {"contentSchema"}
_DEPENDENCIES = {"dependentSchemas", "dependencies"}
_MAPS = _DEFINITIONS | _DEPENDENCIES | {"properties", "patternProperties"}
_KEYWORDS = _SAME_PLACE | _MEMBERS | _ITEMS | _NOWHERE | {"properties", "prefixItems"}
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")


class SchemaError(ValueError):
    """A schema that is not accepted; the message is a sentence for its author."""


def subschemas(schema: Schema) -> Iterator[tuple[Path, object]]:
    """Yield the schemas directly in a schema, with the keys that lead to them."""
    for keyword, inside in schema.items():
        if keyword not in _KEYWORDS:
            continue
        if keyword in _MAPS and isinstance(inside, Mapping):
            yield from (((keyword, name), member) for name, member in inside.items())
        elif isinstance(inside, list):
            yield from (((keyword, index), item) for index, item in enumerate(inside))
        elif keyword not in _MAPS:
            yield (keyword,), inside


class Subschema(NamedTuple):
    """A schema that is an object, its path, and the number of schemas around it."""

    path: Path
    depth: int
    schema: Schema


def every_subschema(schema: Schema) -> Iterator[Subschema]:
    """Yield the schema and all schemas in it that are objects, outermost first."""
    pending = [Subschema((), 0, schema)]
    # The list grows while it is read.
    for path, depth, outer in pending:
        yield Subschema(path, depth, outer)
        pending.extend(
            Subschema((*path, *keys), depth + 1, inner)
            for keys, inner in subschemas(outer)
            if isinstance(inner, Mapping)
        )


class AllBut(frozenset[str]):
    """All names, except for the items that the set is made of."""

    def __contains__(self, name: object) -> bool:
        return not super().__contains__(name)


def secret_members(schema: Schema, names: Collection[str] = ()) -> frozenset[str]:
    """Return `names` and all members that are marked as write-only or as passwords.

    They may be at any depth.  If a marked member is not named in `properties`, the
    result is all names except those of unmarked members.
    """
    every, secret = [*every_subschema(schema)], {*names}
    while True:
        marked = [
            each
            for each in every
            if each.schema.get("writeOnly") is True
            or each.schema.get("format") == "password"
            or not secret.isdisjoint(_references_in(each.schema))
        ]
        marked_names = {name for each in marked for name in _names_of(each)}
        if marked_names <= secret:
            break
        secret |= marked_names
    paths = [each.path for each in marked if _DEFINITIONS.isdisjoint(each.path[:1])]
    # Outside of definitions, an owner that is a reference means: it has no name.
    if any(_owner(path).startswith("#/") for path in paths):
        return AllBut({_owner(each.path) for each in every} - secret)
    return frozenset(secret)


def _names_of(subschema: Subschema) -> Iterator[str]:
    """Yield the member that a subschema is about, and all references to it."""
    path, schema = subschema.path, subschema.schema
    yield _owner(path)
    steps = (str(each).replace("~", "~0").replace("/", "~1") for each in path)
    yield "/".join(("#", *steps))
    yield from (f"#{schema[each]}" for each in _ANCHORS if each in schema)


def _references_in(schema: Schema) -> list[str]:
    references = (schema.get(keyword) for keyword in _REFERENCES)
    return [unquote(each) for each in references if isinstance(each, str)]


def _owner(path: Path) -> str:
    """Return the innermost member that a path leads to, or else its first two steps."""
    for index in range(len(path) - 2, -1, -1):
        if path[index] == "properties":
            return str(path[index + 1])
    return f"#/{'/'.join(map(str, path[:2]))}"


@dataclass(slots=True)
class _Node:
    """The numbers of the schemas that a schema applies to its own and inner places."""

    same: list[int] = field(default_factory=list)
    by_place: dict[tuple[str, str | int], list[int]] = field(default_factory=dict)
    any_member: list[int] = field(default_factory=list)
    any_item: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Unfolding:
    """A schema with everything that it applies to the same place, and how often."""

    size: int
    by_place: dict[tuple[str, str | int], Counter[int]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    any_member: Counter[int] = field(default_factory=Counter)
    any_item: Counter[int] = field(default_factory=Counter)

    def cost_below(self, costs: Mapping[int, int]) -> int:
        """Return the highest cost of one inner place; `costs` are by schema number."""
        maxima = {"member": 0, "item": 0}
        for (kind, _), children in self.by_place.items():
            maxima[kind] = max(maxima[kind], _total_cost(children, costs))
        member = maxima["member"] + _total_cost(self.any_member, costs)
        item = maxima["item"] + _total_cost(self.any_item, costs)
        return max(member, item)


class SchemaGraph:
    """The schemas that are reachable from a root, references resolved.

    Raises SchemaError if a reference is not local or has no target, or if schemas apply
    themselves to the same place.
    """

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._anchors = _anchor_schemas(root)
        self._numbers = {id(root): 0}
        self._schemas = [root]
        # The list grows while it is read; every schema is visited once.
        self._nodes = [self._build_node(schema) for schema in self._schemas]
        same = {number: node.same for number, node in enumerate(self._nodes)}
        try:
            inner_first = list(TopologicalSorter(same).static_order())
        except CycleError:
            raise SchemaError(
                "The schema refers to itself without going deeper into the value, so"
                " checking would never end."
            ) from None
        self._order = {number: order for order, number in enumerate(inner_first)}

    def expansion(self) -> int:
        """Return the most subschemas that apply to one place of a value."""
        sizes: dict[int, int] = {}
        for number in self._order:
            sizes[number] = 1 + sum(sizes[child] for child in self._nodes[number].same)
        return max(sizes.values())

    def growth_by_depth(self) -> tuple[int, ...]:
        """Return at most how many schemas apply to a place, by its depth in the value.

        The last number also holds for all deeper places, up to DEEPEST_VALUE.
        """
        unfolded: dict[int, _Unfolding] = {}
        todo = [0]
        # Start with the root, then add all schemas of inner places.
        for number in todo:
            if number not in unfolded:
                unfolded[number] = one = self._unfold_schema(number)
                todo.extend(chain(one.any_member, one.any_item, *one.by_place.values()))
        costs = {number: one.size for number, one in unfolded.items()}
        growth = [costs[0]]
        while len(growth) <= DEEPEST_VALUE:
            deeper = {number: one.cost_below(costs) for number, one in unfolded.items()}
            growth.append(max(growth[-1], deeper[0]))
            if deeper == costs:
                break
            costs = deeper
        return tuple(growth)

    def _unfold_schema(self, start: int) -> _Unfolding:
        times = self._application_counts(start)
        one = _Unfolding(times.total())
        for number, count in times.items():
            node = self._nodes[number]
            _add_counts(one.any_member, node.any_member, count)
            _add_counts(one.any_item, node.any_item, count)
            for key, children in node.by_place.items():
                _add_counts(one.by_place[key], children, count)
        return one

    def _application_counts(self, start: int) -> Counter[int]:
        """Return how often each schema is applied to the place of `start`."""
        reached = {start}
        pending = [start]
        while pending:
            same = self._nodes[pending.pop()].same
            pending.extend(number for number in same if number not in reached)
            reached.update(same)
        times = Counter({start: 1})
        # Go from outer to inner schemas, so that a count is complete before it is used.
        for number in sorted(reached, key=self._order.__getitem__, reverse=True):
            _add_counts(times, self._nodes[number].same, times[number])
        return times

    def _build_node(self, schema: Schema) -> _Node:
        node = _Node()
        for keys, child in subschemas(schema):
            if isinstance(child, Mapping):
                self._link_child(node, keys, self._number_of(child))
        for keyword in _REFERENCES:
            if keyword in schema:
                node.same.append(
                    self._number_of(self._reference_target(schema[keyword]))
                )
        return node

    def _link_child(self, node: _Node, keys: Path, number: int) -> None:
        keyword = str(keys[0])
        if keyword in _SAME_PLACE:
            node.same.append(number)
        elif keyword in _MEMBERS:
            node.any_member.append(number)
        elif keyword == "properties":
            node.by_place["member", keys[1]] = [number]
        elif keyword in ("prefixItems", "items") and len(keys) > 1:
            node.by_place["item", keys[1]] = [number]
        elif keyword in _ITEMS:
            node.any_item.append(number)

    def _number_of(self, schema: Schema) -> int:
        number = self._numbers.setdefault(id(schema), len(self._schemas))
        if number == len(self._schemas):
            self._schemas.append(schema)
        return number

    def _reference_target(self, reference: object) -> Schema:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise SchemaError(
                f"The reference {str(reference)[:80]!r} is not local. Only references"
                " that start with '#' are allowed; nothing is fetched."
            )
        fragment = unquote(reference[1:])
        target = (
            resolve_pointer(self._root, fragment)
            if fragment[:1] in {"", "/"}
            else self._anchors.get(fragment)
        )
        if not isinstance(target, Mapping | bool):
            raise SchemaError(
                f"The reference {reference[:80]!r} leads to no schema in this document."
            )
        return target if isinstance(target, Mapping) else {}


def _anchor_schemas(root: Schema) -> dict[str, Schema]:
    anchors: dict[str, Schema] = {}
    for _, _, schema in every_subschema(root):
        names = [schema.get(keyword) for keyword in _ANCHORS]
        # Up to draft 7, an anchor is an `$id` that has only a fragment.
        plain_id = schema.get("$id")
        if isinstance(plain_id, str) and plain_id.startswith("#"):
            names.append(plain_id[1:])
        anchors |= {name: schema for name in names if isinstance(name, str)}
    return anchors


def resolve_pointer(value: object, pointer: str) -> object:
    """Return the target of a JSON Pointer (RFC 6901), or None."""
    for escaped in pointer.split("/")[1:]:
        key = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def _add_counts(times: Counter[int], numbers: Sequence[int], count: int) -> None:
    for number in numbers:
        times[number] += count


def _total_cost(children: Counter[int], costs: Mapping[int, int]) -> int:
    return sum(count * costs[number] for number, count in children.items())
