"""What lint says of a tool's schemas: limits, patterns, parameters."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from mcp_app.catalog.definition_texts import (
    DefinitionText,
    estimate_tokens,
    prose_texts,
)
from mcp_app.catalog.findings import Finding, advice, count_text, must_fix
from mcp_app.conf import mcp_settings
from mcp_app.interface.definitions import Definition, ToolDefinition
from mcp_app.interface.rules import PARAMETER, text_problem, visible
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.headers import mirrored_parameters
from mcp_app.protocol.jsonrpc import Path
from mcp_app.protocol.portable_schemas import with_portable_keywords
from mcp_app.protocol.schema_graph import Schema, Subschema, every_subschema
from mcp_app.protocol.schemas import SchemaLimits, check_schema
from mcp_app.protocol.texts import takes_forever

# -- text lint -------------------------------------------------------------------------
# Lint of texts: missing ones, long ones, and hidden characters.

LONG_DESCRIPTION: Final = 1_024
"""In characters.  OpenAI's models refuse more; Claude Code cuts at twice as many."""

HIDDEN: Final = "hidden-character"
"""The rule that no text has invisible characters."""

_ORDER = re.compile(
    r"<important>"
    r"|ignore (?:all |any |the )*(?:previous|earlier|above|other) instructions"
    r"|do not (?:tell|inform|mention (?:this|it) to) the user"
    r"|without telling the user",
    re.IGNORECASE,
)


def description_findings(definition: Definition) -> Iterator[Finding]:
    """Yield what is wrong with descriptions: missing, too long."""
    text = str(definition.description)
    names = {_only_letters(definition.name), _only_letters(str(definition.title))}
    if not text.strip():
        yield _missing_description(definition)
    elif _only_letters(text) in names:
        message = _("The description only repeats the name. Say more.")
        yield advice("description-repeats-name", "description", message)
    if len(text) > LONG_DESCRIPTION:
        message = _(
            "The description has %(count)s characters (≈ %(tokens)s tokens). Some"
            " clients refuse or cut more than %(limit)s. Two to four sentences are"
            " enough."
        ) % {
            "count": count_text(len(text)),
            "tokens": count_text(estimate_tokens(text)),
            "limit": count_text(LONG_DESCRIPTION),
        }
        yield advice("description-long", "description", message)


def _missing_description(definition: Definition) -> Finding:
    if isinstance(definition, ToolDefinition):
        message = _(
            "The description is missing. The model reads it to decide when to use the "
            "tool: say what it does, when to use it, and what comes back."
        )
        return must_fix("description-missing", "description", message)
    message = _(
        "The description is missing. People read it in their client's menu. Write one"
        " sentence that says what this is."
    )
    return advice("description-missing", "description", message)


def _only_letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def hidden_findings(texts: Iterable[DefinitionText]) -> Iterator[Finding]:
    """Yield the first hidden character of each column."""
    reported: set[str] = set()
    for field, text, lines, place in texts:
        problem = text_problem(text, lines=lines)
        if problem and field not in reported:
            reported.add(field)
            message = f"{place}: {problem}" if place else problem
            yield must_fix(HIDDEN, field, message)


def order_findings(definition: Definition) -> Iterator[Finding]:
    """Yield texts that give the model hidden orders, as poisoned tools do."""
    for field, text in prose_texts(definition):
        if match := _ORDER.search(text):
            message = _(
                "“%(words)s” reads like a hidden instruction that has nothing to do"
                " with this definition. Clients that look for such instructions may"
                " refuse it."
            )
            yield advice("planted-order", field, message % {"words": match.group()})


# -- schema lint -----------------------------------------------------------------------

MAX_NAMES = 10
"""Names that one message lists."""

_CHOICES = ("oneOf", "anyOf", "allOf")
_REFERENCE = re.compile(r"#/(\$defs|definitions)/([^/~%]+)")
_ELSEWHERE = {"$ref", "$dynamicRef", "patternProperties", *_CHOICES, "if"}
"""Keywords whose own schemas may describe further members or types."""
_TYPED = {"type", "enum", "const", "not", "properties", "items", *_ELSEWHERE}
# The keywords of drafts 4 to 2020-12, and those that OpenAPI adds.
_NAMES = """
    $anchor $comment $defs $dynamicAnchor $dynamicRef $id $recursiveAnchor
    $recursiveRef $ref $schema $vocabulary additionalItems additionalProperties allOf
    anyOf const contains contentEncoding contentMediaType contentSchema default
    definitions dependencies dependentRequired dependentSchemas deprecated description
    discriminator else enum enumNames example examples exclusiveMaximum exclusiveMinimum
    externalDocs format id if items maxContains maxItems maxLength maxProperties
    maximum minContains minItems minLength minProperties minimum multipleOf not
    nullable oneOf pattern patternProperties prefixItems properties propertyNames
    readOnly required then title type unevaluatedItems unevaluatedProperties
    uniqueItems writeOnly xml
"""
_KEYWORDS = frozenset(_NAMES.split())
_ALIKE = 0.8
_LOOKED_UP = 50
"""Unknown keywords of one schema that are compared with the known ones."""


def schema_findings(field: str, schema: Schema) -> Iterator[Finding]:
    """Yield the findings for any schema; for a refused one only that it is refused."""
    limits = mcp_settings.limits
    sizes = SchemaLimits(limits.schema, limits.schema_depth, limits.subschemas)
    try:
        facts = _schema_facts(jsonrpc.write(schema), field == "input_schema", sizes)
    except ValueError as error:
        yield must_fix("schema-refused", field, str(error))
        return
    for pattern in facts.slow:
        message = _("The pattern %(pattern)s could take forever. Simplify it.")
        values = {"pattern": visible(pattern)}
        yield must_fix("pattern-slow", field, message % values)
    for header in facts.underscored:
        message = _(
            "The header %(header)s has an underscore, which many servers drop. Use a "
            "hyphen."
        )
        values = {"header": visible(header)}
        yield must_fix("header-underscore", field, message % values)
    for keyword, steps, close in facts.misspelt:
        message = _(
            "“%(keyword)s” at %(place)s is not a schema keyword. Did you mean "
            "“%(close)s”?"
        )
        path = jsonrpc.path_text(steps)
        values = {"keyword": visible(keyword), "place": path, "close": close}
        yield advice("keyword-misspelt", field, message % values)
    if field == "input_schema":
        yield from _unreadable(facts)


def _unreadable(facts: _Facts) -> Iterator[Finding]:
    """Yield schemas for which some clients show none of the server's tools.

    This was tried with llama-index-tools-mcp 0.6.0.
    """
    if facts.recursive:
        message = _(
            "The schema %(names)s contains itself. llama-index cannot read such a"
            " schema, and then shows none of the server's tools; clients of Gemini may"
            " refuse it. Write out the levels that you need, or accept any value."
        )
        values = {"names": names_text(facts.recursive)}
        yield advice("schema-recursive", "input_schema", message % values)


class _Facts(NamedTuple):
    """What is wrong with a schema, before it becomes sentences in a language."""

    slow: tuple[str, ...]
    misspelt: tuple[tuple[str, Path, str], ...]
    """The keyword, its steps, and the keyword that was meant."""
    underscored: tuple[str, ...]
    """Headers of parameters that WSGI could not tell from others (PEP 3333)."""
    recursive: tuple[str, ...]
    """Definitions that contain themselves."""


# Many tools share a schema: those of one function, or those without parameters.
@lru_cache(maxsize=64)
def _schema_facts(text: bytes, is_input: bool, sizes: SchemaLimits) -> _Facts:
    """Return the facts of a schema; ValueError says why saving would refuse it."""
    schema = json.loads(text)
    if schema.get("type") != "object":
        raise ValueError('The schema needs "type": "object" at its top.')
    check_schema(schema, sizes)
    mirrored = mirrored_parameters(schema) if is_input else ()
    subschemas = list(every_subschema(schema))
    slow = filter(takes_forever, _schema_patterns(subschemas))
    return _Facts(
        tuple(slow),
        tuple(islice(misspelt_keywords(subschemas), MAX_NAMES)),
        tuple(each.header for each in mirrored if "_" in each.header),
        tuple(_recursive(schema)),
    )


def parameter_findings(schema: Schema) -> Iterator[Finding]:
    """Yield the findings for the parameters of an input schema that can be read."""
    for keyword in _CHOICES:
        if keyword in schema:
            message = _(
                "“%(keyword)s” is at the top of the schema. Claude refuses such a"
                " tool; put it inside a parameter."
            )
            values = {"keyword": keyword}
            yield advice("schema-choice-at-top", "input_schema", message % values)
    members = parameters(schema).items()
    for rule, is_problem, sentence in _PARAMETER_RULES:
        if names := [name for name, each in members if is_problem(name, each, schema)]:
            message = sentence % {"names": names_text(names), "count": len(names)}
            yield advice(rule, "input_schema", message)


def parameters(schema: Schema) -> Mapping[str, object]:
    """Return the parameters of an input schema, by name."""
    members = schema.get("properties")
    return members if isinstance(members, Mapping) else {}


def names_text(names: Iterable[str]) -> str:
    """Return names for a message; of many names only the first ones."""
    texts = [visible(name) for name in names]
    listed = ", ".join(texts[:MAX_NAMES])
    return listed if len(texts) <= MAX_NAMES else f"{listed}, …"


def _schema_patterns(subschemas: Iterable[Subschema]) -> Iterator[str]:
    for subschema in subschemas:
        pattern = subschema.schema.get("pattern")
        if isinstance(pattern, str):
            yield pattern
        members = subschema.schema.get("patternProperties")
        if isinstance(members, Mapping):
            yield from members


def misspelt_keywords(
    subschemas: Iterable[Subschema],
) -> Iterator[tuple[str, Path, str]]:
    """Yield a misspelt keyword, the path of its schema, and the keyword meant."""
    unknown = (
        (keyword, subschema.path)
        for subschema in subschemas
        for keyword in subschema.schema
        if keyword not in _KEYWORDS
    )
    for keyword, path in islice(unknown, _LOOKED_UP):
        # To compare very long keywords would take long.
        for close in difflib.get_close_matches(keyword[:40], _KEYWORDS, 1, _ALIKE):
            yield keyword, path, close


def _recursive(schema: Schema) -> list[str]:
    """Return the names of definitions that contain themselves, also through others."""
    references = {
        (keyword, name): [
            (reference[1], reference[2])
            for each in every_subschema(definition)
            if (reference := _REFERENCE.fullmatch(str(each.schema.get("$ref", ""))))
        ]
        for keyword in ("$defs", "definitions")
        for name, definition in _as_mapping(schema.get(keyword)).items()
        if isinstance(definition, Mapping)
    }
    try:
        TopologicalSorter(references).prepare()
    except CycleError as error:
        # The second argument of the error is the cycle.
        return sorted({name for _keyword, name in error.args[1]})
    return []


def _as_mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _referenced_schema(member: object, schema: Schema) -> Schema:
    reference = _REFERENCE.fullmatch(str(_as_mapping(member).get("$ref", "")))
    if not reference:
        return _as_mapping(member)
    return _as_mapping(_as_mapping(schema.get(reference[1])).get(reference[2]))


def _lacks_description(name: str, member: object, schema: Schema) -> bool:
    part = _as_mapping(member)
    if member is False or str(part.get("description", "")).strip():
        return False
    return "$ref" not in part or not _referenced_schema(part, schema).get("description")


def _lacks_type(name: str, member: object, schema: Schema) -> bool:
    if isinstance(member, bool):
        return member  # True accepts any value, False none.
    return isinstance(member, Mapping) and not member.keys() & _TYPED


def _has_refused_name(name: str, member: object, schema: Schema) -> bool:
    return PARAMETER.fullmatch(name) is None


def _is_refused(name: str, member: object, schema: Schema) -> bool:
    part = dict(_referenced_schema(member, schema))
    return with_portable_keywords(part) != part


_UNDESCRIBED = ngettext_lazy(
    "The parameter %(names)s has no description. Without one models guess; say "
    "what it means.",
    "The parameters %(names)s have no description. Without one models guess; say "
    "what they mean.",
    "count",
)
_UNTYPED = ngettext_lazy(
    "The parameter %(names)s accepts anything. Give it a type, or models guess "
    "what to send.",
    "The parameters %(names)s accept anything. Give them types, or models guess "
    "what to send.",
    "count",
)
_REFUSED = ngettext_lazy(
    "The name of the parameter %(names)s does not work with every client: Claude"
    " accepts only letters, digits and _ . -, at most 64 of them.",
    "The names of the parameters %(names)s do not work with every client: Claude"
    " accepts only letters, digits and _ . -, at most 64 of them.",
    "count",
)
_NOT_FOR_ALL = gettext_lazy(
    "Some clients refuse every request with this tool because of %(names)s. OpenAI and"
    " VS Code want “items” of each list, beside “prefixItems”, too. Gemini wants one"
    " “type”, and no “enum” or “const” but of texts that are not empty: use “anyOf”,"
    " “minimum”, “maximum”. autogen reads “const” only beside “enum”."
)
_PARAMETER_RULES: tuple[tuple[str, Callable[[str, object, Schema], bool], Any], ...] = (
    ("parameter-description-missing", _lacks_description, _UNDESCRIBED),
    ("parameter-type-missing", _lacks_type, _UNTYPED),
    ("parameter-name-refused", _has_refused_name, _REFUSED),
    ("parameter-refused", _is_refused, _NOT_FOR_ALL),
)


def required_findings(schema: Schema) -> Iterator[Finding]:
    """Yield the names that a schema requires but does not describe."""
    required = schema.get("required")
    if not isinstance(required, list) or schema.keys() & _ELSEWHERE:
        return
    members = parameters(schema)
    unknown = [str(name) for name in required if name not in members]
    if unknown:
        message = _("The schema requires %(names)s, but “properties” does not have it.")
        values = {"names": names_text(unknown)}
        yield advice("required-unknown", "input_schema", message % values)
