"""A file that somebody sent, read strictly: what is wrong is named with its place."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.dateparse import parse_datetime
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.catalog.row_loader import digests_of
from mcp_app.conf import mcp_settings
from mcp_app.interface.rules import media_type_problem, visible
from mcp_app.interface.server import PAGE_SIZE
from mcp_app.models import DefinitionRow, PublishedRow, Server
from mcp_app.models.definitions import Source
from mcp_app.models.fields import DEMANDS, digest, split_words
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ProtocolError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import ReadLimits
from mcp_app.publishing.bundle.format import (
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
    content_hash_of,
    key_column,
    kind_of_model,
)
from mcp_app.publishing.bundle.writing import (
    content_problems,
    unknown_member,
    with_place,
)

# -- shapes ----------------------------------------------------------------------------
# What the members of a file are: each shape with the sentence for what it is not.


@dataclass(frozen=True, slots=True)
class Shape:
    fits: Callable[[object], bool]
    must: str | Promise


_HASH = re.compile(r"[0-9a-f]{64}")


def _is_valid_text(value: object) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _is_nonempty_text(value: object) -> bool:
    return _is_valid_text(value) and value != ""


def is_positive_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_sha256_hash(value: object) -> bool:
    return isinstance(value, str) and bool(_HASH.fullmatch(value))


def _is_name_list(value: object) -> bool:
    """Whether it is a list that a column with names between blanks can hold."""
    return isinstance(value, list) and all(
        _is_nonempty_text(each) and split_words(each) == (each,) for each in value
    )


def _is_iso_time(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        return parse_datetime(value) is not None
    except ValueError:
        return False


TEXT = Shape(_is_valid_text, gettext_lazy("This must be a text without NUL."))
KEY = Shape(
    _is_nonempty_text, gettext_lazy("This must be a text without NUL, and not empty.")
)
COUNT = Shape(is_positive_count, gettext_lazy("This must be a whole number above 0."))
HASHED = Shape(
    _is_sha256_hash,
    gettext_lazy("This must be a SHA-256: 64 lower-case hexadecimal digits."),
)
NAMES = Shape(_is_name_list, gettext_lazy("This must be a list of names."))
TIME = Shape(_is_iso_time, gettext_lazy("This must be a time (ISO 8601)."))
OBJECT = Shape(
    lambda value: isinstance(value, dict), gettext_lazy("This must be an object.")
)
DEMANDED = Shape(
    lambda value: (
        isinstance(value, dict)
        and value.keys() <= set(DEMANDS)
        and all(map(_is_valid_text, value.values()))
    ),
    gettext_lazy("This must be an object with texts: permission, groups, rule."),
)
LIST = Shape(
    lambda value: isinstance(value, list), gettext_lazy("This must be a list.")
)
SOURCE = Shape(
    lambda value: value in Source.values,
    gettext_lazy("This must be “here” or “code”."),
)

Shapes = Mapping[str, Shape]
PUBLISHED: Final[Shapes] = {"number": COUNT, "hash": HASHED, "content": OBJECT}
SIGNED: Final[Shapes] = {"note": TEXT, "author": TEXT, "created": TIME}
BLOB: Final[Shapes] = {"digest": HASHED, "media_type": TEXT, "content": TEXT}
FILE: Final[Shapes] = {**dict.fromkeys(LISTS, LIST), "blobs": LIST}
CONTENTS: Final[Shapes] = {"working": OBJECT, "published": OBJECT}


def members_of(model: type[PublishedRow], value: object) -> tuple[Shapes, Shapes]:
    """Return which members an entry must and may have."""
    required = {key_column(model): KEY}
    if model is Server:
        access = {"access": NAMES, "page_size": COUNT}
        return {**required, **access}, {"demands": DEMANDED, **CONTENTS}
    is_overlay = isinstance(value, dict) and value.get("source") == Source.CODE
    if is_overlay:
        required["name"] = KEY
    return required, {"source": SOURCE, **CONTENTS}


# -- reading ---------------------------------------------------------------------------

LIMITS: Final = ReadLimits(depth=72, nodes=1_000_000)
"""A content may be as deep as everywhere, and stands a few levels below the top."""


def read_bundle(body: bytes) -> Bundle:
    """Return what a file holds; raises `BundleRefused` with all that is wrong."""
    if len(body) > MOST_BYTES:
        raise BundleRefused([too_large(len(body))])
    file = _parse_file(body)
    reader = _Reader()
    bundle = reader.build_bundle(file, digest(body))
    if reader.problems:
        raise BundleRefused(reader.problems[:MAX_PROBLEMS])
    return bundle


def too_large(size: int) -> str:
    """Return what is said of a file of so many bytes."""
    return _("The file has %(size)d bytes; the limit is %(limit)d.") % {
        "size": size,
        "limit": MOST_BYTES,
    }


def _parse_file(body: bytes) -> JsonObject:
    _check_strings(body)
    try:
        file = jsonrpc.read(body, LIMITS)
    except ProtocolError as error:
        raise BundleRefused([_place_of_error(body, error.message)]) from None
    if not isinstance(file, dict) or file.get("format") != FORMAT:
        raise BundleRefused(
            [
                _("This is not a bundle: “format” must be “%(format)s”.")
                % {"format": FORMAT}
            ]
        )
    version = file.get("version")
    if not is_positive_count(version):
        raise BundleRefused(
            [with_place("version", _("This must be a whole number above 0."))]
        )
    if version != VERSION:
        message = _(
            "The file was made by a newer version (%(version)s; this site reads up to"
            " %(known)d). Update this site first."
        )
        raise BundleRefused([message % {"version": version, "known": VERSION}])
    return file


def _check_strings(body: bytes) -> None:
    """Refuse more strings than there may be names and values, before it costs much."""
    quotes = body.count(b'"') - body.count(b'\\"')
    if quotes > 4 * (LIMITS.nodes + 1):
        message = _("The file has more than %(count)d values.")
        raise BundleRefused([message % {"count": LIMITS.nodes}])


def _place_of_error(body: bytes, message: str) -> str:
    """Say where a file stops being JSON; `said` is what a strict reader said."""
    message = message.replace("The body", _("The file"))
    if message.endswith("values."):
        return message
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


# -- reading ------------------------------------------------------------------------


class _Reader:
    """Collects what is wrong; what it returns counts only where nothing is."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def build_bundle(self, file: JsonObject, file_digest: str) -> Bundle:
        rest = {
            name: value
            for name, value in file.items()
            if name not in {"format", "version"}
        }
        if not self._has_valid_members(rest, "", {}, FILE):
            return Bundle(())
        entries = [entry for entry in self._read_entries(rest) if entry is not None]
        self._check_unique(entries)
        uploads = self._read_uploads(rest.get("blobs", ()))
        self._check_uploads(entries, uploads)
        return Bundle(tuple(entries), uploads, file_digest)

    def _read_entries(self, lists: JsonObject) -> Iterator[Entry | None]:
        for name, model in LISTS.items():
            for index, value in enumerate(lists.get(name, ())):
                if len(self.problems) >= MAX_PROBLEMS:
                    return
                yield self._read_entry(value, model, f"{name}[{index}]")

    def _has_valid_members(
        self, value: object, place: str, required: Shapes, optional: Shapes
    ) -> bool:
        """Whether an object has these members and no others."""
        before = len(self.problems)
        if not isinstance(value, dict):
            self.problems.append(with_place(place, str(OBJECT.must)))
            return False
        shapes = {**required, **optional}
        prefix = f"{place}." if place else ""
        for name, member in value.items():
            member_place = f"{prefix}{visible(name)}"
            if name not in shapes:
                self.problems.append(unknown_member(member_place))
            elif not shapes[name].fits(member):
                self.problems.append(with_place(member_place, str(shapes[name].must)))
        for name in required:
            if name not in value:
                self.problems.append(with_place(place, _missing_member(name)))
        return len(self.problems) == before

    def _read_entry(
        self, value: object, model: type[PublishedRow], place: str
    ) -> Entry | None:
        required, optional = members_of(model, value)
        if not self._has_valid_members(value, place, required, optional):
            return None
        assert isinstance(value, dict)  # noqa: S101 - `_has_valid_members` has looked
        key = str(value[key_column(model)])
        published = self._read_published(value.get("published"), f"{place}.published")
        if published is None and "published" in value:
            return None
        working = value.get("working")
        if working is None:
            working = {} if published is None else published.content
        entry = Entry(
            place=place,
            model=model,
            key=key,
            working=working,
            published=published,
            source=value.get("source", Source.HERE),
            name=str(value.get("name", key)),
            access=tuple(value.get("access", ())),
            demands=value.get("demands", {}),
            page_size=value.get("page_size", PAGE_SIZE),
        )
        self.problems.extend(_entry_problems(entry, value))
        return entry

    def _read_published(
        self, value: JsonObject | None, place: str
    ) -> PublishedContent | None:
        if value is None or not self._has_valid_members(
            value, place, PUBLISHED, SIGNED
        ):
            return None
        published = PublishedContent(**value)
        if content_hash_of(published.content) != published.hash:
            message = _(
                "The hash does not match the content, which was changed after it was"
                " published. Change the working copy instead."
            )
            self.problems.append(with_place(place, message))
        return published

    def _check_unique(self, entries: list[Entry]) -> None:
        first_entries: dict[tuple[str, str, str], Entry] = {}
        for entry in entries:
            for name in _unique_names(entry):
                first = first_entries.setdefault(name, entry)
                if first is not entry:
                    message = _("The file has “%(key)s” already at %(place)s.")
                    details = {"key": visible(name[2]), "place": first.place}
                    self.problems.append(with_place(entry.place, message % details))

    # -- uploads ----------------------------------------------------------------------

    def _read_uploads(self, blobs: list[object]) -> Mapping[str, Upload]:
        uploads: dict[str, Upload] = {}
        for index, value in enumerate(blobs):
            place = f"blobs[{index}]"
            if not self._has_valid_members(value, place, BLOB, {}):
                continue
            assert isinstance(value, dict)  # noqa: S101 - `_has_valid_members` has looked
            if value["digest"] in uploads:
                self.problems.append(
                    with_place(place, _("The file has this digest twice."))
                )
            if upload := self._read_upload(value, place):
                uploads[value["digest"]] = upload
        return uploads

    def _read_upload(self, value: Mapping[str, str], place: str) -> Upload | None:
        media_type = value["media_type"]
        if problem := media_type_problem(media_type):
            self.problems.append(with_place(place, problem))
        try:
            content = b64decode(value["content"], validate=True)
        except ValueError:
            self.problems.append(with_place(place, _("The content is not base64.")))
            return None
        limit = mcp_settings.limits.body
        if len(content) > limit:
            message = _("The content has %(size)d bytes; the limit is %(limit)d.")
            sentence = message % {"size": len(content), "limit": limit}
            self.problems.append(with_place(place, sentence))
        if digest(content) != value["digest"]:
            self.problems.append(
                with_place(place, _("The digest does not match the content."))
            )
        return Upload(content, media_type)

    def _check_uploads(
        self, entries: list[Entry], uploads: Mapping[str, Upload]
    ) -> None:
        used_digests: set[str] = set()
        for entry in entries:
            for content in entry.all_contents():
                used_digests.update(digests_of(content))
                for name in digests_of(content):
                    if name not in uploads:
                        message = _(
                            "This entry uses the upload “%(name)s”, which is missing in"
                            " the file."
                        )
                        sentence = message % {"name": visible(name[:64])}
                        self.problems.append(with_place(entry.place, sentence))
        for name in uploads.keys() - used_digests:
            self.problems.append(
                _("Nothing uses the upload “%(name)s”.") % {"name": name}
            )


def _missing_member(name: str) -> str:
    return _("“%(name)s” is missing.") % {"name": name}


def _entry_problems(entry: Entry, value: JsonObject) -> Iterator[str]:
    row = entry.model()
    if isinstance(row, DefinitionRow):
        row.source = entry.source
    for place, content in _contents_by_place(entry, value):
        yield from content_problems(row, content, f"{entry.place}.{place}")
        column = key_column(entry.model)
        if entry.is_defined_by_staff and content.get(column, "") == "":
            yield with_place(f"{entry.place}.{place}", _missing_member(column))
    if entry.is_defined_by_staff:
        yield from _key_problems(entry)


def _contents_by_place(
    entry: Entry, value: JsonObject
) -> Iterator[tuple[str, JsonObject]]:
    if "working" in value or entry.published is None:
        yield "working", entry.working
    if entry.published is not None:
        yield "published.content", entry.published.content


def _key_problems(entry: Entry) -> Iterator[str]:
    working_key = entry.working.get(key_column(entry.model))
    # What is missing, or no text, was told already.
    if isinstance(working_key, str) and working_key not in {"", entry.key}:
        message = _("The key “%(key)s” differs from the name in the working copy.")
        yield with_place(entry.place, message % {"key": visible(entry.key)})


def _unique_names(entry: Entry) -> Iterator[tuple[str, str, str]]:
    """Yield what no other entry may have: its key, and what it is published as."""
    kind = kind_of_model(entry.model)
    yield "key", kind, entry.key
    published = entry.published
    if published is not None and entry.is_defined_by_staff:
        yield "published", kind, str(published.content.get(key_column(entry.model)))
