"""A pasted address or curl command, taken apart into the config of a call."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl, quote, urlsplit

from django.utils.translation import gettext as _

from mcp_app.egress.sites import PORTS, Site, usable_sites
from mcp_app.interface.log_secrets import names_secret
from mcp_app.interface.rules import visible
from mcp_app.kinds.http.config import MAX_PAIRS, METHODS, RESERVED_HEADERS
from mcp_app.kinds.http.request import FORM, JSON, is_json_type
from mcp_app.protocol.json_types import JsonObject


class NoCall(ValueError):
    """What was pasted is no call of a site of the settings; the message says why."""


@dataclass
class PastedCall:
    """The config of a call; `left_out` says what of the text is not in it."""

    site: Site
    config: JsonObject
    left_out: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """What was found, for people."""
        method = self.config.get("method", "GET")
        details = {"method": method, "site": self.site.title}
        sentence = _("%(method)s at %(site)s.") % details
        if not self.left_out:
            return sentence
        names = ", ".join(dict.fromkeys(self.left_out))
        return f"{sentence} {_('Left out: %(names)s.') % {'names': names}}"


def call_from_text(text: str) -> PastedCall:
    """Take an address or a curl command apart; raises `NoCall`."""
    call = _call_from_any(text.strip())
    lists = [call.config.get(each, ()) for each in ("query", "headers")]
    lists.append(call.config.get("body", {}).get("form", ()))
    if any(len(each) > MAX_PAIRS for each in lists):
        raise NoCall(_("A call has at most %d pairs of one sort.") % MAX_PAIRS)
    return call


def _call_from_any(text: str) -> PastedCall:
    if re.match(r"curl(\.exe)?\s", text):
        return _call_from_curl(text)
    if text.startswith(("<", "{", "[")) or re.search(r"\s", text):
        message = _(
            "This is no address and no curl command, but perhaps the content of a page."
            " Paste what stands in the browser's address bar, such as %(example)s."
        )
        example = next((f"{each.url}/…" for each in usable_sites().values()), "")
        raise NoCall(message % {"example": example or "https://api.example.com/…"})
    return _call_at(text)


def _call_at(address: str) -> PastedCall:
    """Return a GET of an address: its site, path and pairs."""
    if "://" not in address:
        address = f"https://{address}"
    try:
        parts = urlsplit(address)
        place = parts.hostname or "", parts.port or PORTS.get(parts.scheme)
    except ValueError:
        # User and password stand before the host, and are never repeated.
        bare = re.sub(r"//[^/?#]*@", "//", address)
        message = _("“%(address)s” is no address.") % {"address": visible(bare)[:80]}
        raise NoCall(message) from None
    start = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    fitting = [
        each
        for each in usable_sites().values()
        if (each.scheme, (each.host, each.port)) == (parts.scheme, place)
        and f"{parts.path}/".startswith(f"{each.prefix}/")
    ]
    if not fitting:
        message = _(
            "No site of the settings begins with %(start)s. Ask a developer to add it."
        )
        raise NoCall(message % {"start": visible(start)[:200]})
    site = max(fitting, key=lambda each: len(each.prefix))
    path = parts.path.removeprefix(site.prefix) or "/"
    call = PastedCall(site, {"site": site.key, "path": path})
    if "@" in parts.netloc:
        call.left_out.append(_key_of("user:password@"))
    _add_pairs(call, parse_qsl(parts.query, keep_blank_values=True))
    return call


def _key_of(what: str) -> str:
    return _("%(what)s (the site's key is in the settings)") % {"what": what}


def _add_pairs(call: PastedCall, pairs: list[tuple[str, str]]) -> None:
    for name, value in pairs:
        if name in call.site.secret_query or names_secret(name):
            call.left_out.append(_key_of(f"?{visible(name)[:40]}"))
        elif name:
            query = call.config.setdefault("query", [])
            query.append({"name": name, "value": value})


# -- curl ------------------------------------------------------------------------------

MAX_WORDS: Final = 1_000
_FLAGS: Final = """
    -k --insecure -L --location -s --silent -S --show-error -v --verbose -i --include
    -f --fail --compressed
"""
_OPTIONS: Final = {
    "method": ("-X", "--request"),
    "headers": ("-H", "--header"),
    "data": ("-d", "--data", "--data-ascii", "--data-binary", "--data-raw"),
    "encoded": ("--data-urlencode",),
    "json": ("--json",),
    "form": ("-F", "--form", "--form-string"),
    "user": ("-u", "--user"),
    "cookies": ("-b", "--cookie"),
}
"""The options of curl that have a value, by what we do with them."""
_OF_BROWSERS: Final = re.compile(
    r"sec-.*|user-agent|referer|origin|accept-encoding|cache-control|pragma|dnt"
    r"|priority|upgrade-insecure-requests",
    re.IGNORECASE,
)
"""Headers that browsers send by themselves."""
_TEXTS: Final = re.compile(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\$'((?:[^'\\]|\\.)*)'""", re.DOTALL
)
"""Texts of a shell; of the last sort, with escapes, are those that browsers copy."""


class _Curl(argparse.ArgumentParser):
    """Reads the options of curl as curl does: -sSXPOST, --request POST."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("-G", "--get", action="store_true")
        for flag in _FLAGS.split():
            self.add_argument(flag, dest="flags", action="append_const", const=flag)
        for name, options in _OPTIONS.items():
            self.add_argument(*options, dest=name, action="append", default=[])
        self.set_defaults(flags=[])

    def error(self, message: str) -> NoReturn:
        sentence = _("This curl command cannot be read: %(why)s.")
        raise NoCall(sentence % {"why": visible(message)[:200]})


def _call_from_curl(text: str) -> PastedCall:
    text = _TEXTS.sub(_unescape_text, re.sub(r"\\\r?\n", " ", text))
    try:
        words = shlex.split(text)[1:]
    except ValueError:
        message = _("This curl command cannot be read: a quote is not closed.")
        raise NoCall(message) from None
    if len(words) > MAX_WORDS:
        raise NoCall(_("A command has at most %d words here.") % MAX_WORDS)
    options, rest = _Curl().parse_known_args(_with_values(words))
    addresses = [each for each in rest if not each.startswith("-")]
    if not addresses:
        raise NoCall(_("This curl command has no address."))
    call = _call_at(min(addresses, key=lambda each: "://" not in each))
    left_out = call.left_out
    left_out += [_key_of("-u")] if options.user else []
    left_out += [_("cookies")] if options.cookies else []
    left_out += [each for each in options.flags if each in {"-k", "-L"}]
    # A value may be secret: of what is unknown only the name is said.
    unknown = [each for each in rest if each.startswith("-")]
    left_out += [
        visible(each.partition("=")[0])[: 40 if each.startswith("--") else 2]
        for each in unknown
    ]
    media_type = _read_headers(call, options.headers)
    _read_body(call, options, media_type)
    has_body = (options.data or options.encoded or options.json or options.form) and (
        not options.get
    )
    method = (options.method or ["POST" if has_body else "GET"])[-1].upper()
    if method not in METHODS:
        message = _("%(method)s cannot be called, only %(methods)s.")
        details = {"method": visible(method)[:20], "methods": ", ".join(METHODS)}
        raise NoCall(message % details)
    if method != "GET":
        call.config["method"] = method
    return call


def _with_values(words: list[str]) -> Iterator[str]:
    """Yield the words; a value that begins as an option does stands with its own."""
    options = {*chain.from_iterable(_OPTIONS.values())}
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in options else None
        if value is not None and value.startswith("-"):
            yield f"{word}={value}" if word.startswith("--") else f"{word}{value}"
            continue
        yield word
        if value is not None:
            yield value


def _unescape_text(match: re.Match[str]) -> str:
    if match[1] is None:
        return match[0]
    text = match[1].replace("\\'", "'").replace('"', '\\"')
    try:
        return shlex.quote(str(json.loads(f'"{text}"', strict=False)))
    except ValueError:
        return shlex.quote(match[1])


def _read_headers(call: PastedCall, lines: list[str]) -> str:
    """Take over the headers; return the type of the body."""
    media_type = ""
    for line in lines:
        name, _colon, value = (each.strip() for each in line.partition(":"))
        shown = _("the header %(name)s") % {"name": visible(name)[:40]}
        if name.lower() == "content-type":
            media_type = value
        elif name.lower() == "cookie":
            call.left_out.append(_("cookies"))
        elif _OF_BROWSERS.fullmatch(name):
            call.left_out.append(_("headers of the browser"))
        elif name.lower() in call.site.secret_names or names_secret(name):
            call.left_out.append(_key_of(shown))
        elif RESERVED_HEADERS.fullmatch(name) or not name:
            call.left_out.append(shown)
        else:
            headers = call.config.setdefault("headers", [])
            headers.append({"name": name, "value": value})
    return media_type


def _read_body(call: PastedCall, options: Any, media_type: str) -> None:
    """Take over what is sent, but for what curl reads from files."""
    encoded = (each.partition("=") for each in options.encoded)
    texts = [
        *options.data,
        *options.json,
        *(f"{name}{equals}{quote(text)}" for name, equals, text in encoded),
    ]
    data = [each for each in texts if not each.startswith("@")]
    pairs = [each.partition("=")[::2] for each in options.form]
    fields = [each for each in pairs if not each[1].startswith(("@", "<"))]
    if len(data) < len(texts) or len(fields) < len(pairs):
        call.left_out.append(_("files"))
    if options.get:
        _add_pairs(call, parse_qsl("&".join(data), keep_blank_values=True))
    elif fields:
        call.config["body"] = _form_of(call, fields)
    elif data and not pairs:
        media_type = JSON if options.json else media_type
        call.config["body"] = _body_of(call, "&".join(data), media_type)


def _form_of(call: PastedCall, pairs: list[tuple[str, str]]) -> JsonObject:
    open_pairs = _without_secrets(call, pairs)
    return {"form": [{"name": name, "value": value} for name, value in open_pairs]}


def _without_secrets(
    call: PastedCall, pairs: Iterable[tuple[str, Any]]
) -> Iterator[tuple[str, Any]]:
    for name, value in pairs:
        if names_secret(name, value):
            call.left_out.append(_key_of(visible(name)[:40]))
        else:
            yield name, value


def _body_of(call: PastedCall, text: str, media_type: str) -> JsonObject:
    """Return a body as a config has it; JSON is known by its type, or by itself."""
    bare = media_type.partition(";")[0].strip().lower()
    if not bare or is_json_type(bare):
        try:
            value = json.loads(
                text, object_pairs_hook=lambda each: dict(_without_secrets(call, each))
            )
        except (ValueError, RecursionError):
            value = None
        if bare or isinstance(value, dict | list):
            own = {"type": media_type} if bare not in ("", JSON) else {}
            return {"json": text if value is None else value, **own}
    if bare in ("", FORM):
        return _form_of(call, parse_qsl(text, keep_blank_values=True))
    return {"text": text, "type": media_type}
