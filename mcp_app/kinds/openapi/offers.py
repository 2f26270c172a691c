"""The offers of a document: for each operation the parameters and the call of a tool.

If an operation cannot become a tool, its offer says why; the others are not affected.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, Final, TypeVar

from django.utils.translation import gettext as _

from mcp_app.conf import MIB
from mcp_app.egress.sites import Site
from mcp_app.interface.rules import text_problem
from mcp_app.kinds.http.config import (
    MAX_PAIRS,
    METHODS,
    REPEAT,
    RESERVED_HEADERS,
    SEVERAL,
    read_http_config,
)
from mcp_app.kinds.http.request import is_json_type
from mcp_app.kinds.openapi.reading import (
    DocumentError,
    Names,
    Offer,
    argument_name,
    is_same_server,
    pair_style_of,
    snake_case,
    split_path,
)
from mcp_app.kinds.openapi.schemas import (
    MOST_WRITTEN,
    Translator,
    Unusable,
    resolve_references,
    serialize_schema,
)
from mcp_app.kinds.placeholders import single_braces
from mcp_app.protocol import jsonrpc, schemas
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.portable_schemas import portable_schema

MOST_OPERATIONS: Final = 30_000
MAX_TEXT_LENGTH: Final = 1_000
MAX_SUMMARY_LENGTH: Final = 200
SHORTEST_NAME: Final = 3
"""If fewer characters of an operationId are left, method and path become the name."""
MAX_KEY_LENGTH: Final = 500
MAX_SERVERS: Final = 10
MAX_PARAMETERS: Final = 10 * MAX_PAIRS
"""Parameters of all places; an operation with more is not read."""

Members = TypeVar("Members", list[Any], dict[str, Any])

logger = logging.getLogger("mcp_app.kinds")


def offers_of(
    document: JsonObject, site: Site, max_bytes: int = MOST_WRITTEN
) -> list[Offer]:
    """Return the offers of a document, which together take at most `max_bytes`.

    Raises `DocumentError` if they are too many or take more.
    """
    translator = Translator(document, old=str(document["openapi"]).startswith("3.0"))
    offers: list[Offer] = []
    names = Names()
    size = 0
    for method, path, item, operation in _operations(document):
        if len(offers) >= MOST_OPERATIONS:
            raise DocumentError(
                _("The document has more than %d operations.") % MOST_OPERATIONS
            )
        reader = _OperationReader(document, translator, site, method, path)
        offer = reader.read_offer(item, operation, names)
        # The schema of a barred operation counts, too: many may share a large one.
        size += max(reader.size, len(jsonrpc.write(offer.to_json())))
        if size > max_bytes:
            message = _("The operations of the document take more than %d MiB.")
            raise DocumentError(message % (max_bytes // MIB))
        offers.append(offer)
    return offers


def _operations(
    document: JsonObject,
) -> Iterator[tuple[str, str, JsonObject, JsonObject | Unusable]]:
    paths: JsonObject = document.get("paths") or {}
    for path, part in paths.items():
        if not path.startswith("/"):
            continue
        item = _resolve_part(document, part)
        if isinstance(item, Unusable):
            # The path cannot be read, so its operations are unknown.
            yield "ANY", path, {}, item
            continue
        for method in METHODS:
            name = method.lower()
            if name in item:
                yield method, path, item, _resolve_part(document, item[name])


def _resolve_part(document: JsonObject, part: Any) -> JsonObject | Unusable:
    try:
        return resolve_references(document, part)
    except Unusable as error:
        return error


def _trimmed_text(value: object, longest: int) -> str:
    return value[:longest].strip() if isinstance(value, str) else ""


@dataclass
class _OperationReader:
    """Reads one operation of a document into an `Offer`."""

    document: JsonObject
    translator: Translator
    site: Site
    method: str
    path: str
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    config: JsonObject = field(default_factory=dict)
    size: int = 0
    """Bytes of the schema."""
    address: str = ""
    """The path without the query that some documents write behind it."""
    _reserved: set[str] = field(default_factory=set)
    """Parameters of the path whose values may have slashes."""

    def read_offer(
        self, item: JsonObject, operation: JsonObject | Unusable, names: Names
    ) -> Offer:
        about = {} if isinstance(operation, Unusable) else operation
        key = f"{self.method} {self.path}"
        is_long = len(key) > MAX_KEY_LENGTH
        described: JsonObject = {
            # The mark keeps a cut key apart from the key of another operation.
            "key": f"{key[:MAX_KEY_LENGTH]}…" if is_long else key,
            "name": names.reserve_name(self._tool_base_name(about)),
            "summary": self._offer_summary(about),
            "description": _trimmed_text(about.get("description"), MAX_TEXT_LENGTH),
            "tags": tuple(self._offer_tags(about)),
        }
        try:
            if isinstance(operation, Unusable):
                raise operation
            if is_long:
                message = _("its path is longer than %d characters")
                raise Unusable(message % (MAX_KEY_LENGTH - len(self.method) - 1))
            schema = portable_schema(self._read_operation(item, operation))
        except Unusable as error:
            return Offer(**described, bar=str(error)[:MAX_TEXT_LENGTH])
        except DocumentError:
            raise
        except Exception:
            logger.exception("An operation of an OpenAPI document cannot be read")
            return Offer(**described, bar=_("it cannot be read; the log says why"))
        remarks = tuple(dict.fromkeys(self.remarks))
        return Offer(
            **described, input_schema=schema, config=self.config, remarks=remarks
        )

    def _tool_base_name(self, about: JsonObject) -> str:
        operation_id = about.get("operationId")
        base = snake_case(operation_id) if isinstance(operation_id, str) else ""
        if len(base) < SHORTEST_NAME:
            base = snake_case(f"{self.method.lower()} {self.path}")
        return base

    def _offer_summary(self, about: JsonObject) -> str:
        """Return the summary, with the operationId if that is lost in the name."""
        summary = _trimmed_text(about.get("summary"), MAX_SUMMARY_LENGTH)
        name = about.get("operationId")
        if not isinstance(name, str) or name.isascii() or name in summary:
            return summary
        text = f"{summary} ({name})" if summary else name
        return _trimmed_text(text, MAX_SUMMARY_LENGTH)

    def _offer_tags(self, about: JsonObject) -> Iterator[str]:
        tags = about.get("tags")
        for each in self._count_parts(tags) if isinstance(tags, list) else ():
            if isinstance(each, str) and each.strip():
                yield each.strip()[:100]

    def _count_parts(self, parts: Members) -> Members:
        """Count parts against the document's limit of values, and return them."""
        self.translator.count_nodes(len(parts))
        return parts

    def _read_operation(self, item: JsonObject, operation: JsonObject) -> JsonObject:
        """Fill in the config, and return the schema of the parameters."""
        self.config.update(site=self.site.key, method=self.method)
        parameters = [*self._parameters(item, operation)]
        names = Counter(parameter["name"] for parameter in parameters)
        in_path: dict[str, str] = {}
        self.address, fixed = split_path(self.path)
        query: list[JsonObject] = [
            {"name": name, "value": value} for name, value in fixed if name not in names
        ]
        headers: list[JsonObject] = []
        for parameter in parameters:
            place = parameter["in"]
            if place == "path":
                in_path |= self._path_argument(parameter)
            elif place == "query":
                query += self._query_pair(parameter, names)
            elif place == "header":
                headers += self._header_pair(parameter, names)
            else:
                self._leave_out_parameter(parameter, _("it is a cookie"))
        if len(self.required) > MAX_PAIRS:
            raise Unusable(_("it requires more than %d parameters") % MAX_PAIRS)
        self.config["path"] = self._path_with_placeholders(in_path)
        pairs = {"query": query, "headers": headers}
        self.config.update({name: each for name, each in pairs.items() if each})
        self._refuse_streams(operation)
        self._read_request_body(operation)
        self._remark_servers(item, operation)
        return self._finished_schema()

    def _path_with_placeholders(self, in_path: Mapping[str, str]) -> str:
        if re.search("[{}]", _PLACE.sub("", self.address)):
            raise Unusable(_("its path has a brace that is no parameter's"))
        originals = _PLACE.findall(self.address)
        if originals and originals[-1] in self._reserved:
            self.config["segments"] = SEVERAL
        message = _("%(name)s may have no slash: it is not the last value of the path")
        for original in self._reserved.difference(originals[-1:]):
            self.remarks.append(message % {"name": original[:60]})
        for original in originals:
            if original not in in_path:
                message = _("its path has {%(name)s}, which no parameter describes")
                raise Unusable(message % {"name": original[:40]})
        # One pass replaces all: the new name of one may be the old name of another.
        return _PLACE.sub(lambda match: "{{" + in_path[match[1]] + "}}", self.address)

    # -- parameters ------------------------------------------------------------------

    def _parameters(self, *holders: JsonObject) -> Iterator[JsonObject]:
        """Yield the parameters of the path, replaced by like ones of the operation."""
        lists = [holder.get("parameters") or [] for holder in holders]
        if not all(isinstance(each, list) for each in lists):
            raise Unusable(_("its parameters are no list"))
        if sum(map(len, lists)) > MAX_PARAMETERS:
            raise Unusable(_("it has more than %d parameters") % MAX_PARAMETERS)
        # A parameter takes about as long as five values of a schema.
        self.translator.count_nodes(5 * sum(map(len, lists)))
        by_name: dict[tuple[str, str], JsonObject] = {}
        for each in chain.from_iterable(lists):
            parameter = resolve_references(self.document, each)
            name, place = parameter.get("name"), parameter.get("in")
            if not isinstance(name, str) or not isinstance(place, str) or not name:
                raise Unusable(_("a parameter of it has no name or no place"))
            by_name[place, name] = parameter
        yield from by_name.values()

    def _leave_out_parameter(self, parameter: JsonObject, why: str) -> None:
        name = str(parameter["name"])[:60]
        if parameter.get("required") is True:
            message = _("it needs %(name)s, which cannot be given: %(why)s")
            raise Unusable(message % {"name": name, "why": why})
        message = _("%(name)s is left out: %(why)s")
        self.remarks.append(message % {"name": name, "why": why})

    def _add_argument(
        self, parameter: JsonObject, place: str, names: Counter[str]
    ) -> str:
        original = parameter["name"]
        base = argument_name(original)
        if names[original] > 1 or base in self.properties:
            base = f"{base}_in_{place}"
        numbered = (f"{base}_{number}" for number in count(2))
        name = next(
            each for each in chain([base], numbered) if each not in self.properties
        )
        schema = self.translator.translate(parameter.get("schema", {}))
        about = _trimmed_text(parameter.get("description"), MAX_TEXT_LENGTH)
        self.properties[name] = _describe_schema(schema, original, about)
        if parameter.get("required") is True or place == "path":
            self.required.append(name)
        return name

    def _path_argument(self, parameter: JsonObject) -> dict[str, str]:
        style = parameter.get("style", "simple")
        exploded = parameter.get("explode") and self._is_object(parameter)
        if style != "simple" or exploded:
            message = _("%(name)s is written in a way that cannot be sent: %(style)s")
            details = {"name": parameter["name"][:60], "style": str(style)[:60]}
            raise Unusable(message % details)
        if parameter["name"] not in _PLACE.findall(self.address):
            # The parameter is left out even if it is required.
            optional = {**parameter, "required": False}
            self._leave_out_parameter(optional, _("the path does not have it"))
            return {}
        if parameter.get("allowReserved") is True:
            self._reserved.add(parameter["name"])
        # The counter is empty: a name in the path changes only if it is taken already.
        return {parameter["name"]: self._add_argument(parameter, "path", Counter())}

    def _query_pair(
        self, parameter: JsonObject, names: Counter[str]
    ) -> list[JsonObject]:
        original, style = parameter["name"], pair_style_of(parameter)
        if original in self.site.secret_query:
            optional = {**parameter, "required": False}
            self._leave_out_parameter(optional, _("the settings set it"))
        elif "content" in parameter:
            self._leave_out_parameter(parameter, _("it is JSON inside the address"))
        elif style is None:
            self._leave_out_parameter(parameter, _("its style is unknown"))
        else:
            name = self._add_argument(parameter, "query", names)
            return [_pair_of(original, name, style)]
        return []

    def _header_pair(
        self, parameter: JsonObject, names: Counter[str]
    ) -> list[JsonObject]:
        original = parameter["name"]
        if original.lower() in self.site.secret_names | _IGNORED_HEADERS:
            return []
        if RESERVED_HEADERS.fullmatch(original) or "content" in parameter:
            self._leave_out_parameter(parameter, _("no tool may set this header"))
        elif parameter.get("explode") and self._is_object(parameter):
            self._leave_out_parameter(parameter, _("it is an object"))
        else:
            name = self._add_argument(parameter, "header", names)
            return [_pair_of(original, name)]
        return []

    def _is_object(self, parameter: JsonObject) -> bool:
        schema = parameter.get("schema")
        if isinstance(schema, dict) and "$ref" in schema:
            schema = resolve_references(self.document, schema)
        return isinstance(schema, dict) and (
            schema.get("type") == "object" or "properties" in schema
        )

    # -- bodies ----------------------------------------------------------------------

    def _read_request_body(self, operation: JsonObject) -> None:
        if not operation.get("requestBody"):
            return
        body = resolve_references(self.document, operation["requestBody"])
        content = body.get("content")
        if not isinstance(content, dict) or not content:
            return
        required = body.get("required") is True
        if self.method == "GET":
            self._leave_out_body(_("the body of a GET, which is never sent"), required)
            return
        for fits, take in _BODIES:
            for media_type, media in self._count_parts(content).items():
                if fits(_bare_media_type(media_type)):
                    described = resolve_references(self.document, media)
                    take(self, media_type, described, required)
                    return
        what = _("a file")
        if parts := [each for each in content if each.startswith("multipart/")]:
            what = _("%s, which cannot be sent") % parts[0][:60]
        self._leave_out_body(what, required)

    def _leave_out_body(self, what: str, required: bool) -> None:
        # Only a GET may go without its body.
        if required or self.method != "GET":
            raise Unusable(_("it wants %s") % what)
        self.remarks.append(_("the body is left out: it is %s") % what)

    def json_body(self, media_type: str, media: JsonObject, required: bool) -> None:
        is_json = _bare_media_type(media_type) == "application/json"
        body: JsonObject = {} if is_json or "*" in media_type else {"type": media_type}
        self.config["body"] = body
        schema = self.translator.translate(media.get("schema", {}))
        lifted = self._liftable_arguments(schema)
        if lifted is None:
            body["json"] = self._whole_body(schema, required)
            return
        self._lift_arguments(schema, lifted, required)
        body["json"] = {each: "{{" + name + "}}" for each, name in lifted.items()}

    def form_body(self, _type: str, media: JsonObject, required: bool) -> None:
        schema = self.translator.translate(media.get("schema", {}))
        if not required and schema == _NO_FIELDS:
            return
        lifted = self._liftable_arguments(schema)
        if lifted is None:
            what = _(
                "the fields of its form are not described, or one is called as a"
                " parameter is"
            )
            raise Unusable(what)
        encoding = media.get("encoding")
        pairs = []
        for each, name in lifted.items():
            about = encoding.get(each, {}) if isinstance(encoding, dict) else {}
            style = pair_style_of(about) if isinstance(about, dict) else None
            pairs.append(_pair_of(each, name, style or REPEAT))
        self._lift_arguments(schema, lifted, required)
        self.config["body"] = {"form": pairs}

    def text_body(self, media_type: str, _media: JsonObject, required: bool) -> None:
        text = self._whole_body({"type": "string"}, required)
        self.config["body"] = {"text": text, "type": media_type}

    def _liftable_arguments(self, schema: Any) -> dict[str, str] | None:
        """Return argument names by property; None if the body must be one argument."""
        if isinstance(schema, dict) and set(schema) == {"$ref"}:
            name = schema["$ref"].rpartition("/")[2]
            schema = self.translator.definition(name)
        if not isinstance(schema, dict) or schema.keys() & _COMPOSED:
            return None
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return None
        additional = schema.get("additionalProperties")
        if schema.get("type", "object") != "object" or additional not in (None, False):
            return None
        lifted = {each: argument_name(each) for each in self._count_parts(properties)}
        names = set(lifted.values())
        if len(names) < len(lifted) or names & self.properties.keys():
            return None
        return lifted

    def _lift_arguments(
        self, schema: Any, lifted: Mapping[str, str], required: bool
    ) -> None:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            schema = self.translator.definition(name)
        for each, name in lifted.items():
            member = schema["properties"][each]
            if self.method == "PATCH" and isinstance(member, dict):
                # PATCH leaves missing members unchanged: a default would change them.
                member = {key: part for key, part in member.items() if key != "default"}
            self.properties[name] = _describe_schema(member, each, "")
        if required and isinstance(schema.get("required"), list):
            names = [each for each in schema["required"] if isinstance(each, str)]
            self.required += [lifted[each] for each in names if each in lifted]

    def _whole_body(self, schema: Any, required: bool) -> str:
        name = "body"
        while name in self.properties:
            name = f"{name}_"
        self.properties[name] = schema
        if required:
            self.required.append(name)
        return "{{" + name + "}}"

    def _remark_servers(self, item: JsonObject, operation: JsonObject) -> None:
        """Add a remark if the document has an operation at another address.

        The host of the document does not matter, because the settings name the host.
        """
        special = operation.get("servers") or item.get("servers")
        servers = special or self.document.get("servers")
        items = servers[:MAX_SERVERS] if isinstance(servers, list) else []
        urls = [str(each.get("url", "")) for each in items if isinstance(each, dict)]
        same = any(is_same_server(url, self.site, any_host=not special) for url in urls)
        if urls and not same:
            theirs = urls[0][:MAX_SUMMARY_LENGTH]
            message = _(
                "the document has it at %(theirs)s, but the call goes to %(ours)s"
            )
            self.remarks.append(message % {"theirs": theirs, "ours": self.site.url})

    # -- the rest --------------------------------------------------------------------

    def _refuse_streams(self, operation: JsonObject) -> None:
        """Refuse an operation whose only good answer is a stream of events."""
        kinds: set[str] = set()
        responses = operation.get("responses")
        by_status = self._count_parts(responses) if isinstance(responses, dict) else {}
        for each in (e for s, e in by_status.items() if str(s).startswith("2")):
            with suppress(Unusable):
                content = resolve_references(self.document, each).get("content")
                if isinstance(content, dict):
                    kinds |= {*map(_bare_media_type, self._count_parts(content))}
        if kinds == {"text/event-stream"}:
            raise Unusable(_("its answer is a stream"))

    def _finished_schema(self) -> JsonObject:
        schema: JsonObject = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = list(dict.fromkeys(self.required))
        if definitions := self.translator.definitions_of(schema):
            schema["$defs"] = definitions
        text = serialize_schema(schema)
        self.size = len(text)
        refused = _("its schema is refused: %(error)s")
        try:
            schemas.check_schema(schema)
        except schemas.SchemaError as error:
            raise Unusable(refused % {"error": error}) from None
        if hidden := text_problem(text.decode(), lines=True):
            raise Unusable(refused % {"error": hidden})
        _call, problems = read_http_config(
            self.config, self.properties, "parameter", self.site
        )
        if problems:
            raise Unusable(_("it cannot be called: %s") % problems[0].message)
        if names := [*single_braces(self.config.get("query"))]:  # from the path
            raise Unusable(_("“{%s}” of its path is no parameter") % names[0])
        return schema


_PLACE: Final = re.compile(r"\{([^{}]*)\}")
"""The place of a parameter in a path, such as {id}."""
_COMPOSED: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "$ref"})
_NO_FIELDS: Final = {"type": "object", "properties": {}, "additionalProperties": False}
_IGNORED_HEADERS: Final = frozenset({"accept", "content-type", "authorization"})
"""Headers that OpenAPI itself says are ignored as parameters."""


def _describe_schema(schema: Any, original: str, about: str) -> Any:
    """Return a schema with a description, which repeats a name that is not ASCII."""
    if not isinstance(schema, dict):
        return schema
    text = schema.get("description", about)
    if not original.isascii():
        text = f"“{original[:60]}”: {text}" if text else f"“{original[:60]}”"
    return {**schema, "description": text} if text else schema


def _pair_of(original: str, name: str, style: str = REPEAT) -> JsonObject:
    pair = {"name": original, "value": "{{" + name + "}}"}
    return pair if style == REPEAT else {**pair, "style": style}


def _bare_media_type(media_type: str) -> str:
    return media_type.partition(";")[0].strip().lower()


def _is_form_type(media_type: str) -> bool:
    return media_type == "application/x-www-form-urlencoded"


def _is_text_type(media_type: str) -> bool:
    return media_type.startswith("text/") or media_type.endswith(("/xml", "+xml"))


_TakeBody = Callable[[_OperationReader, str, JsonObject, bool], None]
_BODIES: Final[tuple[tuple[Callable[[str], bool], _TakeBody], ...]] = (
    (is_json_type, _OperationReader.json_body),
    (_is_form_type, _OperationReader.form_body),
    (_is_text_type, _OperationReader.text_body),
)
"""The media types of bodies that can be sent, the best first."""
