"""A file that somebody sent, read strictly: what is wrong is named with its place."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
from typing import Any, Final

import jsonschema_rs
from django.db import models
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop
from jsonschema_rs import ValidationErrorKind as Kind

from mcp_app.catalog.row_loader import digests_of
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import media_type_problem, visible
from mcp_app.interface.server import PAGE_SIZE
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import Source
from mcp_app.models.fields import DEMANDS, JSONTextField, digest, parse_json
from mcp_app.models.versions import hash_of
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.publishing.bundle.candidates import CHOSEN
from mcp_app.publishing.bundle.format import (
    CHOICES,
    DEFINITIONS,
    FORMAT,
    LISTS,
    MAX_PROBLEMS,
    MOST_BYTES,
    VERSION,
    Bundle,
    BundleRefused,
    Entry,
    PublishedContent,
    Upload,
    key_column,
)

# -- shapes ----------------------------------------------------------------------------
# One JSON Schema of a file.  `must` is our own member: the sentence for a value that
# does not fit the schema with this member, or a schema within.


def _shape(must: str, **schema: Any) -> JsonObject:
    return {"must": must, **schema}


OBJECT: Final = _shape(gettext_noop("This must be an object."), type="object")
LIST: Final = _shape(gettext_noop("This must be a list."), type="array")
STRING: Final = _shape(gettext_noop("This must be a text."), type="string")
TEXT: Final = _shape(
    gettext_noop("This must be a text without NUL."),
    type="string",
    pattern=r"^[^\u0000]*$",
)
KEY_TEXT: Final = _shape(
    gettext_noop("This must be a text without NUL, and not empty."),
    type="string",
    pattern=r"^[^\u0000]+$",
)
NAME: Final = _shape(
    gettext_noop("This must be a name without blanks and commas."),
    type="string",
    pattern=r"^[^\u0000-\u0020\s,]+$",
)
HASH: Final = _shape(
    gettext_noop("This must be a SHA-256: 64 lower-case hexadecimal digits."),
    type="string",
    pattern="^[0-9a-f]{64}$",
)
TIME: Final = _shape(
    gettext_noop("This must be a time (ISO 8601)."), type="string", format="time"
)
WHOLE: Final = _shape(
    gettext_noop("This must be a whole number."), type="integer", whole=True
)
COUNT: Final = WHOLE | _shape(
    gettext_noop("This must be a whole number above 0."), minimum=1
)
SOURCE: Final = _shape(
    gettext_noop("This must be “here” or “code”."), enum=Source.values
)
JSON: Final[Mapping[str, JsonObject]] = {"object": OBJECT, "array": LIST, "any": {}}
COLUMNS: Final[Mapping[type[models.Field[Any, Any]], JsonObject]] = {
    models.CharField: STRING,
    models.TextField: STRING,
    models.BooleanField: _shape(
        gettext_noop("This must be true or false."), type="boolean"
    ),
    models.FloatField: _shape(
        gettext_noop("This must be a number, at most 1.8e308."),
        type="number",
        minimum=-sys.float_info.max,
        maximum=sys.float_info.max,
    ),
    models.IntegerField: WHOLE,
}


def _object(required: JsonObject, optional: JsonObject) -> JsonObject:
    return {
        **OBJECT,
        "properties": required | optional,
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: JsonObject) -> JsonObject:
    return {**LIST, "items": items}


def _either(
    name: str, value: str, then: JsonObject, otherwise: JsonObject
) -> JsonObject:
    """Return a schema: `then` if the member `name` is `value`, else `otherwise`."""
    condition = {"properties": {name: {"const": value}}, "required": [name]}
    return {"if": condition, "then": then, "else": otherwise}


def _columns(model: type[PublishedRow], names: Iterable[str]) -> JsonObject:
    shapes: JsonObject = {}
    for name in names:
        column = model._meta.get_field(name)
        if isinstance(column, JSONTextField):
            shapes[name] = JSON[column.shape]
        else:
            kind = next(each for each in COLUMNS if isinstance(column, each))
            shapes[name] = COLUMNS[kind]
    return shapes


def _contents(content: JsonObject) -> JsonObject:
    version = {"number": COUNT, "hash": HASH, "content": content}
    signed = {"note": TEXT, "author": TEXT, "created": TIME}
    return {"working": content, "published": _object(version, signed)}


def _server_shape() -> JsonObject:
    once = _shape(gettext_noop("This list has an entry twice."), uniqueItems=True)
    chosen = dict.fromkeys(CHOICES, _list(STRING) | {"allOf": [once]})
    forbidden = _shape(
        gettext_noop("This is allowed only with the selection “chosen”."), enum=[]
    )
    columns = _columns(Server, Server.CONTENT)
    content = _object({}, columns | {CHOSEN: _object({}, chosen)}) | _either(
        "selection", Server.Selection.CHOSEN, {}, {"properties": {CHOSEN: forbidden}}
    )
    demands = _object({}, dict.fromkeys(DEMANDS, TEXT))
    return _object(
        {"slug": KEY_TEXT, "access": _list(NAME), "page_size": COUNT},
        {"demands": demands, **_columns(Server, ["listed"]), **_contents(content)},
    )


def _definition_shape(model: type[DefinitionRow]) -> JsonObject:
    key = {model.IDENTITY: KEY_TEXT}
    overlay = _object({}, _columns(model, model.OVERLAY))
    whole = _object(key, _columns(model, model.CONTENT) | key)
    return _either(
        "source",
        Source.CODE,
        _object(key | {"name": KEY_TEXT}, {"source": SOURCE, **_contents(overlay)}),
        # Without a published version, there must be a working copy.
        _object(key, {"source": SOURCE, **_contents(whole)})
        | {"if": {"required": ["published"]}, "else": {"required": ["working"]}},
    )


SCHEMA: Final = _object(
    {"format": {}, "version": {}},
    {
        "servers": _list(_server_shape()),
        **{name: _list(_definition_shape(each)) for name, each in DEFINITIONS.items()},
        "blobs": _list(
            _object({"digest": HASH, "media_type": TEXT, "content": TEXT}, {})
        ),
    },
)


class _Whole:
    """The keyword `whole`: JSON Schema itself takes 1.0 for an integer."""

    def __init__(self, *schema: object) -> None:
        pass

    def validate(self, value: object) -> None:
        if isinstance(value, float):
            raise ValueError


def _is_time(text: str) -> bool:
    try:
        return parse_datetime(text) is not None
    except ValueError:
        return False


VALIDATOR: Final = jsonschema_rs.validator_for(
    SCHEMA,
    validate_formats=True,
    formats={"time": _is_time},
    keywords={"whole": _Whole},
    mask="the value",
    offline=True,
)


def _shape_problems(file: JsonObject) -> Iterator[str]:
    for error in VALIDATOR.iter_errors(file):
        place = _place_text(error.instance_path)
        match error.kind:
            case Kind.AdditionalProperties(unexpected=names):
                for name in names:
                    inner = _place_text([*error.instance_path, name])
                    yield with_place(
                        inner, _("No member of this name is allowed here.")
                    )
            case Kind.Required(property=name):
                yield with_place(place, _("“%(name)s” is missing.") % {"name": name})
            case _:
                yield with_place(place, _(_must(error.schema_path)))


def _place_text(path: Iterable[str | int]) -> str:
    return "".join(
        f"[{step}]" if isinstance(step, int) else f".{visible(step)}" for step in path
    )


def _must(schema_path: Iterable[str | int]) -> str:
    """Return the sentence of the innermost schema that has one."""
    schema: Any = SCHEMA
    sentence = ""
    for step in schema_path:
        if isinstance(schema, dict):
            sentence = schema.get("must", sentence)
        schema = schema[step]
    return sentence


def with_place(place: str, sentence: str) -> str:
    return _("%(place)s: %(sentence)s") % {
        "place": place.removeprefix("."),
        "sentence": sentence,
    }


# -- reading ---------------------------------------------------------------------------

LIMITS: Final = ReadLimits(depth=72, nodes=1_000_000)
"""The usual depth of a content, and a few levels, because it is not at the top."""


# A string, to be skipped, or the end of a document before another one.
NEXT: Final = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|(\}\s*+)(?=\{)')


def read_bundle(body: bytes) -> Bundle:
    """Return what a file holds; raises `BundleRefused` with all that is wrong.

    The meaning of its values is checked only if all of them have the right shape.
    JSON documents one after another are one bundle.
    """
    return read_files({"": body})


def read_files(files: Mapping[str, bytes]) -> Bundle:
    """Read several files as one bundle; each place begins with the file's name."""
    body = b"".join(files.values())
    if len(body) > MOST_BYTES:
        raise BundleRefused([too_large(len(body))])
    # Refuse too many strings unparsed: a value and its name have at most 4 quotes.
    quotes = body.count(b'"') - body.count(b'\\"')
    max_values = LIMITS.nodes
    if quotes > 4 * (max_values + 1) or jsonrpc.node_count(body) > max_values:
        message = _("The file has more than %(count)d values.")
        raise BundleRefused([message % {"count": max_values}])
    documents: list[tuple[str, JsonObject]] = []
    problems: list[str] = []
    for place, text in _documents(files):
        try:
            documents.append((place, _read_document(text)))
        except BundleRefused as refused:
            problems += [place + problem for problem in refused.problems]
    _refuse_problems(problems)
    entries = [
        _read_entry(value, model, f"{place}{name}[{index}]")
        for place, document in documents
        for name, model in LISTS.items()
        for index, value in enumerate(document.get(name, ()))
    ]
    uploads = {
        blob["digest"]: Upload(b64decode(blob["content"]), blob["media_type"])
        for _place, document in documents
        for blob in document.get("blobs", ())
    }
    _refuse_problems(
        chain(
            *map(_entry_problems, entries),
            _duplicate_entries(entries),
            _upload_problems(entries, {*uploads}),
        )
    )
    return Bundle(tuple(entries), uploads, digest(body))


def _documents(files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the JSON documents in files, each after its place."""
    for name, body in files.items():
        file = f"{visible(name, None)}: " if name else ""
        ends = [each.end() for each in NEXT.finditer(body) if each[1]]
        for number, (start, end) in enumerate(pairwise([0, *ends, len(body)]), 1):
            part = _("document %d") % number + ": " if ends else ""
            yield file + part, body[start:end]


def _refuse_problems(problems: Iterable[str]) -> None:
    if named := dict.fromkeys(islice(problems, MAX_PROBLEMS)):
        raise BundleRefused(named)


def too_large(size: int) -> str:
    """Return the sentence about a file that is too large."""
    return _("The file has %(size)d bytes; the limit is %(limit)d.") % {
        "size": size,
        "limit": MOST_BYTES,
    }


def _read_document(body: bytes) -> JsonObject:
    try:
        file = jsonrpc.read(body, LIMITS)
    except ProtocolError as error:
        raise BundleRefused([_place_of_error(body, error.message)]) from None
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        message = _("This is not a bundle: “format” must be “%(format)s”.")
        raise BundleRefused([message % {"format": FORMAT}])
    version = file.get("version")
    if type(version) is not int or version < 1:
        raise BundleRefused([with_place("version", _(COUNT["must"]))])
    if version < VERSION:
        message = _("The file was made by an older version. Export it again there.")
        raise BundleRefused([message])
    if version > VERSION:
        message = _(
            "The file was made by a newer version (%(version)s; this site reads up to"
            " %(known)d). Update this site first."
        )
        raise BundleRefused([message % {"version": version, "known": VERSION}])
    _refuse_problems(_shape_problems(file))
    _refuse_problems(_blob_problems(file.get("blobs", ())))
    return file


def _place_of_error(body: bytes, message: str) -> str:
    """Say where a file stops being JSON; `message` is what a strict reader said."""
    message = message.replace("The body", _("The file"))
    if message.endswith("values."):
        return message  # The file may be JSON, but has too many values.
    try:
        json.loads(body.decode())
    except json.JSONDecodeError as error:
        line = {"line": error.lineno}
        if error.pos >= len(error.doc.rstrip()) or "Unterminated" in error.msg:
            return _("The file is not complete: it ends in line %(line)d.") % line
        return _("Line %(line)d: this is not JSON.") % line
    except (ValueError, RecursionError):
        return message
    return message


# -- entries ---------------------------------------------------------------------------


def _read_entry(value: JsonObject, model: type[PublishedRow], place: str) -> Entry:
    key, version = value[key_column(model)], value.get("published")
    published = None if version is None else PublishedContent(**version)
    return Entry(
        place=place,
        model=model,
        key=key,
        working=value.get("working", {} if published is None else published.content),
        published=published,
        source=value.get("source", Source.HERE),
        name=str(value.get("name", key)),
        access=tuple(value.get("access", ())),
        listed=value.get("listed", False),
        demands=value.get("demands", {}),
        page_size=value.get("page_size", PAGE_SIZE),
    )


def _entry_problems(entry: Entry) -> Iterator[str]:
    published = entry.published
    # If the file leaves it out, the working copy is the published content itself.
    if published is None or entry.working is not published.content:
        yield from _text_problems(entry.working, f"{entry.place}.working")
    if published is not None:
        place = f"{entry.place}.published"
        yield from _text_problems(published.content, f"{place}.content")
        if hash_of(published.content) != published.hash:
            message = _(
                "The hash does not match the content, which was changed after it was"
                " published. Change the working copy instead."
            )
            yield with_place(place, message)
    column = key_column(entry.model)
    if entry.is_defined_by_staff and entry.working[column] != entry.key:
        message = _("The key “%(key)s” differs from the name in the working copy.")
        yield with_place(entry.place, message % {"key": visible(entry.key)})


def _text_problems(content: JsonObject, place: str) -> Iterator[str]:
    try:
        parse_json(jsonrpc.write(content).decode())
    except ValueError as error:
        yield with_place(place, str(error))


def _duplicate_entries(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield which entries have another one's key, or its published name or URI."""
    first_entries: dict[tuple[str, str, str], Entry] = {}
    for entry in entries:
        names = [("key", entry.kind, entry.key)]
        if entry.published is not None and entry.is_defined_by_staff:
            identity = entry.published.content[key_column(entry.model)]
            names.append(("published", entry.kind, identity))
        for name in names:
            first = first_entries.setdefault(name, entry)
            if first is not entry:
                message = _("The file has “%(key)s” already at %(place)s.")
                details = {"key": visible(name[2]), "place": first.place}
                yield with_place(entry.place, message % details)


# -- uploads ---------------------------------------------------------------------------


def _blob_problems(blobs: Iterable[Mapping[str, str]]) -> Iterator[str]:
    digests: set[str] = set()
    for index, blob in enumerate(blobs):
        place = f"blobs[{index}]"
        if blob["digest"] in digests:
            yield with_place(place, _("The file has this digest twice."))
        digests.add(blob["digest"])
        if problem := media_type_problem(blob["media_type"]):
            yield with_place(place, problem)
        try:
            content = b64decode(blob["content"], validate=True)
        except ValueError:
            yield with_place(place, _("The content is not base64."))
            continue
        limit = mcp_settings.limits.body
        if len(content) > limit:
            message = _("The content has %(size)d bytes; the limit is %(limit)d.")
            yield with_place(place, message % {"size": len(content), "limit": limit})
        if digest(content) != blob["digest"]:
            yield with_place(place, _("The digest does not match the content."))


def _upload_problems(entries: Iterable[Entry], digests: set[str]) -> Iterator[str]:
    used: set[str] = set()
    for entry in entries:
        for content in entry.all_contents():
            used.update(digests_of(content))
            for name in digests_of(content):
                if name not in digests:
                    message = _(
                        "This entry uses the upload “%(name)s”, which is missing in"
                        " the file."
                    )
                    sentence = message % {"name": visible(name[:64])}
                    yield with_place(entry.place, sentence)
    for name in digests - used:
        yield _("Nothing uses the upload “%(name)s”.") % {"name": name}
