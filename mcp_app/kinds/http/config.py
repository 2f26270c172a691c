"""Reads the config of a call to another site, and checks it by the settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final
from urllib.parse import quote

from django.utils.translation import gettext as _

from mcp_app.egress.requests import check_path
from mcp_app.egress.resolving import Forbidden
from mcp_app.egress.sites import Site, header_problem, usable_sites
from mcp_app.interface.log_secrets import BLOT
from mcp_app.kinds import placeholders
from mcp_app.kinds.kind import OUTSIDE, Incomplete, KindError, object_schema
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.jsonrpc import pretty_text

# -- schema ----------------------------------------------------------------------------
# The shape of the config of a call to another site, which a row holds.
#
#     {"site": "helpdesk", "method": "POST", "path": "/tickets/{{queue}}",
#      "query": [{"name": "expand", "value": "{{expand}}", "style": "commas"}],
#      "headers": [{"name": "Accept-Language", "value": "{{language}}"}],
#      "body": {"json": {"subject": "{{subject}}", "source": "chat"}},
#      "take": "ticket", "keep": ["id", "url"], "limit": 50,
#      "errors": {"404": "There is no queue {{queue}}."}}
#
# With `"segments": "several"`, the last value of the path may have slashes in it.  A
# body is `json`, whose `type` is optional, or `form` (pairs as in `query`), or `text`,
# which needs a `type`.

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
STYLES: Final = ("repeat", "commas", "spaces", "pipes", "brackets")
REPEAT, COMMAS, SPACES, PIPES, BRACKETS = STYLES
"""How a query writes lists and objects, like style and explode of OpenAPI."""
SEVERAL: Final = "several"
MAX_PAIRS: Final = 50
MAX_ENTRIES: Final = 1_000

_TEXT: Final[JsonObject] = {"type": "string", "maxLength": 4_000}
_NAME: Final[JsonObject] = {"type": "string", "minLength": 1, "maxLength": 200}
_DOTTED: Final[JsonObject] = {
    "type": "string",
    "pattern": r"^[^.]+(\.[^.]+)*$",
    "maxLength": 200,
}
_PAIRS: Final[JsonObject] = {
    "type": "array",
    "maxItems": MAX_PAIRS,
    "items": object_schema(
        "name", "value", name=_NAME, value=_TEXT, style={"enum": [*STYLES]}
    ),
}

SCHEMA: Final[JsonObject] = object_schema(
    site={"type": "string"},
    method={"enum": [*METHODS]},
    path=_TEXT,
    segments={"enum": [SEVERAL]},
    query=_PAIRS,
    headers={
        "type": "array",
        "maxItems": MAX_PAIRS,
        "items": object_schema("name", "value", name=_NAME, value=_TEXT),
    },
    body={
        "oneOf": [
            object_schema("json", json={}, type=_NAME),
            object_schema("form", form=_PAIRS),
            object_schema("text", "type", text={"type": "string"}, type=_NAME),
        ]
    },
    take=_DOTTED,
    keep={"type": "array", "items": _DOTTED, "maxItems": MAX_PAIRS},
    limit={"type": "integer", "minimum": 1, "maximum": MAX_ENTRIES},
    errors={
        "type": "object",
        "propertyNames": {"pattern": "^[1-5][0-9][0-9]$"},
        "additionalProperties": _TEXT,
        "maxProperties": MAX_PAIRS,
    },
)
"""The JSON Schema of a config."""


# -- config ----------------------------------------------------------------------------

RESERVED_HEADERS: Final = re.compile(
    r"host|cookie|authorization|connection|upgrade|expect|te|transfer-encoding"
    r"|content-.*|forwarded|x-forwarded-.*|x-http-method.*|proxy-.*"
    r"|x-original-url|x-rewrite-url|x-method-override",
    re.IGNORECASE,
)
"""Headers that no row may set: those of connections, of the settings and of proxies."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A name with a value that may have placeholders; `style` writes lists, objects."""

    name: str
    value: str
    style: str = REPEAT


@dataclass(frozen=True, kw_only=True)
class HttpCall:
    """The call to another site in a config; `body` is as it is in the config."""

    site: Site
    path: str
    method: str = "GET"
    segments: str = ""
    query: tuple[Pair, ...] = ()
    headers: tuple[Pair, ...] = ()
    body: Mapping[str, Any] | None = None
    take: str = ""
    keep: tuple[str, ...] = ()
    limit: int | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def only_reads(self) -> bool:
        """Whether its method is safe (RFC 9110, section 9.2.1)."""
        return self.method == "GET"

    @property
    def url(self) -> str:
        """Return the address with its placeholders, for people."""
        return self.site.url + self.path


def read_http_config(
    config: JsonObject, names: Collection[str], noun: str, site: Site | None = None
) -> tuple[HttpCall | None, list[KindError]]:
    """Return the call of a config that fits the `SCHEMA`, or what is wrong with it.

    `names` are those that placeholders may have; `noun` says what they are.  A `site`
    replaces the one that the config names.
    """
    key = config.get("site", "") if site is None else site.key
    if not key:
        return None, [Incomplete(_("Choose a site."))]
    sites = usable_sites() if site is None else {key: site}
    if key not in sites:
        message = _("The settings have no site “%(key)s” that can be used.")
        message %= {"key": key}
        if sites:
            message += " " + _("There is: %(keys)s.") % {"keys": ", ".join(sites)}
        return None, [KindError(message)]
    if not config.get("path"):
        return None, [Incomplete(_("Write the path, such as /tickets."))]
    if problems := [*_config_problems(config, sites[key], names, noun)]:
        return None, problems
    changes: dict[str, Any] = {
        "site": sites[key],
        "query": pairs_from_json(config.get("query", ())),
        "headers": pairs_from_json(config.get("headers", ())),
        "keep": tuple(config.get("keep", ())),
    }
    members = {name: config[name] for name in SCHEMA["properties"] if name in config}
    return HttpCall(**{**members, **changes}), []


def pairs_from_json(entries: Collection[JsonObject]) -> tuple[Pair, ...]:
    """Return the pairs of a query or a form."""
    return tuple(
        Pair(each["name"], each["value"], each.get("style", REPEAT)) for each in entries
    )


def _config_problems(
    config: JsonObject, site: Site, names: Collection[str], noun: str
) -> Iterator[KindError]:
    yield from _placeholder_problems(config, names, noun)
    for name in placeholders.single_braces(config["path"]):
        message = f"“{{{name}}}” is not replaced. Write {{{{{name}}}}}."
        yield KindError(message, place="path")
    for message in _path_problems(config["path"]):
        yield KindError(message, place="path")
    yield from _pair_problems(config, site)
    body, method = config.get("body"), config.get("method", "GET")
    if body is not None and method == "GET":
        message = _("GET has no body. Choose POST, or leave the body out.")
        yield KindError(message, place="method")
    media_type = "" if body is None else body.get("type", "")
    if problem := header_problem("Content-Type", media_type):
        message = _("The type of the body is a header %s") % problem
        yield KindError(message, place="media_type")
    for path, other in product(config.get("keep", ()), repeat=2):
        if other.startswith(f"{path}."):
            message = _("“%(path)s” holds “%(other)s” already. Leave one of them out.")
            yield KindError(message % {"path": path, "other": other}, place="keep")


def _pair_problems(config: JsonObject, site: Site) -> Iterator[KindError]:
    for at, each in enumerate(config.get("query", ())):
        if each["name"] in site.secret_query:
            message = _("“%(name)s” is set by the settings of the site. Leave it out.")
            yield KindError(message % {"name": each["name"]}, place=f"query.{at}.name")
    for at, each in enumerate(config.get("headers", ())):
        for message in _header_problems(each["name"], each["value"], site):
            yield KindError(message, place=f"headers.{at}.name")


def _placeholder_problems(
    config: JsonObject, names: Collection[str], noun: str
) -> Iterator[KindError]:
    body = config.get("body") or {}
    parts = [
        ("path", config["path"]),
        ("body", body.get("json")),
        ("body", body.get("form")),
        ("body", body.get("text")),
    ]
    for part in ("query", "headers"):
        pairs = enumerate(config.get(part, ()))
        parts += [(f"{part}.{at}.value", each) for at, each in pairs]
    texts = [(f"errors.{at}", each) for at, each in config.get("errors", {}).items()]
    for place, value in (*parts, *texts):
        try:
            placeholders.check_placeholders(value, names, noun)
        except KindError as error:
            # An unknown name is a problem of the whole call, or of one error text.
            is_known = placeholders.names_in_value(value) <= {*names}
            is_at_place = is_known or (place, value) in texts
            yield KindError(error.message, place=place if is_at_place else "")


_OWN_TEXT: Final = re.compile(r"[?#\\\x00-\x1f\x7f]")
"""Characters that the fixed text of a path must not have."""
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _path_problems(path: str) -> Iterator[str]:
    if not path.startswith("/"):
        yield _("The path must begin with “/”, such as /tickets.")
        return
    if BLOT in path:
        yield _(
            "“•••” stands in the path for what looks like a key. Write there what it"
            " is, if it is none, or name a parameter."
        )
    # Even pieces are fixed text; each placeholder between them counts as “x”.
    text = "x".join(placeholders.split_pieces(path)[0::2])
    if match := _OWN_TEXT.search(text):
        message = _(
            "The path has %(what)r. Write what follows a “?” in the rows below."
        )
        yield message % {"what": match.group()}
    elif _LONE_PERCENT.search(text):
        yield _("The path has a “%%” that encodes nothing: write %%25.") % ()
    else:
        try:
            check_path(quoted_path(text))
        except Forbidden as error:
            yield error.message


def quoted_path(text: str) -> str:
    """Return the fixed text of a path, percent-encoded as it is sent."""
    return quote(text, safe="/%!$&'()*+,;=:@-._~")


def _header_problems(name: str, value: str, site: Site) -> Iterator[str]:
    if RESERVED_HEADERS.fullmatch(name) or name.lower() in site.secret_names:
        message = _(
            "The header %(name)s cannot be set here: it belongs to the settings."
        )
        yield message % {"name": name}
        return
    text = "x".join(placeholders.split_pieces(value)[0::2])
    if problem := header_problem(name, text):
        yield _("There is a header %s") % problem


# -- description -----------------------------------------------------------------------
# What a call to another site does, part by part and in a sentence, for staff.


def describe_call(config: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield what a config says as pairs of a label and a text."""
    site = usable_sites().get(config.get("site", ""))
    address = ("" if site is None else site.url) + config.get("path", "")
    yield _("Calls"), f"{config.get('method', 'GET')} {address}"
    yield str(OUTSIDE), str(config.get("site", "") if site is None else site.title)
    if config.get("segments"):
        yield _("Last value of the path"), _("may have slashes in it")
    for each in config.get("query", ()):
        yield _("Pair after the “?”"), _pair_words(each)
    for each in config.get("headers", ()):
        yield _("Header"), _pair_words(each)
    yield from ((_("Body"), text) for text in _body_texts(config.get("body", {})))
    members = ", ".join(config.get("keep", ())) or _("all of it")
    part = config.get("take")
    yield _("What clients get"), f"{part}: {members}" if part else members
    if limit := config.get("limit"):
        yield _("At most"), _("%(limit)s entries") % {"limit": limit}
    for status, sentence in config.get("errors", {}).items():
        yield _("If the site refuses"), f"{status}: {sentence}"


def _pair_words(pair: JsonObject) -> str:
    style = f" ({pair['style']})" if pair.get("style", REPEAT) != REPEAT else ""
    return f"{pair['name']}: {pair['value']}{style}"


def _body_texts(body: JsonObject) -> Iterator[str]:
    yield from map(_pair_words, body.get("form", ()))
    media_type = f"{body['type']}: " if "type" in body else ""
    if "json" in body:
        yield media_type + pretty_text(body["json"])
    elif "text" in body:
        yield media_type + body["text"]


def draft_texts(config: JsonObject) -> dict[str, str]:
    """Return title and description for clients; {} if the config has no call yet.

    The config may be incomplete.
    """
    site = usable_sites().get(config.get("site", ""))
    path = str(config.get("path", ""))
    words = [each for each in path.split("/") if each and "{" not in each]
    if site is None or not words:
        return {}
    method = str(config.get("method", "GET"))
    details = {"site": site.title, "what": words[-1], "call": f"{method} {path}"}
    sentence = _("Answers with %(what)s of %(site)s%(by)s%(kept)s.")
    if method != "GET":
        sentence = _("Calls %(call)s of %(site)s%(by)s%(kept)s.")
    names = placeholders.names_in_value({**config, "errors": {}})
    by = _(" by %(names)s") % {"names": ", ".join(sorted(names))} if names else ""
    kept = ", ".join(each.rpartition(".")[2] for each in config.get("keep", ()))
    details |= {"by": by, "kept": f": {kept}" if kept else ""}
    title = _("%(site)s: %(what)s") % details
    return {"title": title, "description": sentence % details}
