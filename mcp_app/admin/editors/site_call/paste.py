"""Turns a pasted address or curl command into the config of a call."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl, quote, urlsplit

from django.utils.translation import gettext as _

from mcp_app.egress.sites import PORTS, Site, usable_sites
from mcp_app.interface.log_secrets import BLOT, CALLS, names_secret
from mcp_app.interface.rules import visible
from mcp_app.kinds.http.config import MAX_PAIRS, METHODS, RESERVED_HEADERS
from mcp_app.kinds.http.request import FORM, JSON, is_json_type
from mcp_app.protocol.json_types import JsonObject


class NoCall(ValueError):
    """The text is no call of a site in the settings; the message says why."""


@dataclass
class PastedCall:
    """The config of a call; `left_out` lists the parts of the text that it lacks."""

    site: Site
    config: JsonObject
    left_out: list[str] = field(default_factory=list)
    remark: str = ""

    @property
    def sentence(self) -> str:
        """The call in words, with the parts that were left out."""
        method = self.config.get("method", "GET")
        details = {"method": method, "site": self.site.title}
        sentence = f"{_('%(method)s at %(site)s.') % details} {self.remark}".rstrip()
        if not self.left_out:
            return sentence
        names = ", ".join(dict.fromkeys(self.left_out))
        return f"{sentence} {_('Left out: %(names)s.') % {'names': names}}"


def call_from_text(text: str) -> PastedCall:
    """Parse an address or a curl command; raises `NoCall`."""
    call = _call_from_any(text.strip())
    lists = [call.config.get(each, ()) for each in ("query", "headers")]
    lists.append(call.config.get("body", {}).get("form", ()))
    if any(len(each) > MAX_PAIRS for each in lists):
        raise NoCall(_("A call has at most %d pairs of one sort.") % MAX_PAIRS)
    return call


def _call_from_any(text: str) -> PastedCall:
    text = re.sub(r"\A[$%>#] +(?=curl)", "", text)
    if re.match(r"curl(\.exe)?\s", text):
        call = _call_from_curl(text)
        # A shell replaces variables, except in single quotes or after a backslash.
        bare = _QUOTED.sub(lambda each: re.sub(r"\\.", "", each["double"] or ""), text)
        names = [*dict.fromkeys(_VARIABLE.findall(bare))][:MAX_PAIRS]
        wording, config = _("what a shell puts in place of %s"), str(call.config)
        call.left_out += [wording % name[:40] for name in names if name in config]
        return call
    if text.startswith(("<", "{", "[")) or re.search(r"\s", text):
        message = _(
            "This is no address and no curl command, but perhaps the content of a page."
            " Paste what stands in the browser's address bar, such as %(example)s."
        )
        example = next((f"{each.url}/…" for each in usable_sites().values()), "")
        raise NoCall(message % {"example": example or "https://api.example.com/…"})
    return _call_at(text)


def _call_at(address: str) -> PastedCall:
    """Return the GET request of an address: its site, path and query pairs."""
    if "://" not in address:
        address = f"https://{address}"
    try:
        parts = urlsplit(address)
        host_and_port = parts.hostname or "", parts.port or PORTS.get(parts.scheme)
    except ValueError:
        # Never show the user and password, which stand before the host.
        bare = re.sub(r"//[^/?#]*@", "//", address)
        message = _("“%(address)s” is no address.") % {"address": visible(bare)[:80]}
        raise NoCall(message) from None
    start = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    fitting = [
        each
        for each in usable_sites().values()
        if (each.scheme, (each.host, each.port)) == (parts.scheme, host_and_port)
        and f"{parts.path}/".startswith(f"{each.prefix}/")
    ]
    if not fitting:
        message = _(
            "No site of the settings begins with %(start)s. Ask a developer to add it."
        )
        raise NoCall(message % {"start": visible(start)[:200]})
    site = max(fitting, key=lambda each: len(each.prefix))
    path = parts.path.removeprefix(site.prefix) or "/"
    segments = [BLOT if _looks_drawn(each) else each for each in path.split("/")]
    call = PastedCall(site, {"site": site.key, "path": "/".join(segments)})
    if BLOT in call.config["path"]:
        call.left_out.append(_doubt_of(_("a part of the path")))
    if "@" in parts.netloc:
        call.left_out.append(_key_of("user:password@"))
    _add_query(call, parts.query)
    return call


def _key_of(what: str) -> str:
    return _("%(what)s (the site's key is in the settings)") % {"what": what}


def _doubt_of(what: str) -> str:
    sentence = _("%(what)s (this looks like a key: write it below if it is none)")
    return sentence % {"what": what}


_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DRAWN: Final = re.compile(
    r"(?<![\w-])(?=[\w-]{20})(?=[A-Za-z_-]*\d)"
    r"(?:[\w-]*?(?:[a-z][A-Z](?![a-z]{2})|[A-Za-z]\d|\d[A-Za-z])){4}",
    re.ASCII,
)
"""A random-looking mix of letters and digits, as in generated keys."""


def _looks_drawn(text: str) -> bool:
    return _DRAWN.search(_UUID.sub("", text)) is not None


def _without_keys(
    call: PastedCall, pairs: Iterable[tuple[str, str]], shown: str = "%s"
) -> Iterator[JsonObject]:
    """Yield the pairs without secrets; `shown` is the format of left-out names."""
    secret_names = {*call.site.secret_query, *call.site.secret_names}
    for name, value in pairs:
        label = shown % visible(name)[:40]
        if not secret_names.isdisjoint([name, name.lower()]) or names_secret(name):
            call.left_out.append(_key_of(label))
        elif names_secret(name, "", CALLS) or _looks_drawn(value):
            call.left_out.append(_doubt_of(label))
        elif name:
            yield {"name": name, "value": value}


def _add_query(call: PastedCall, query: str) -> None:
    pairs = parse_qsl(query, keep_blank_values=True)
    if added := [*_without_keys(call, pairs, "?%s")]:
        call.config.setdefault("query", []).extend(added)


# -- curl ------------------------------------------------------------------------------

MAX_WORDS: Final = 1_000
_FLAGS: Final = """
    -s --silent -S --show-error -v --verbose -i --include -f --fail --compressed -g
    --globoff -N --no-buffer --http1.1 --http2 -k --insecure -L --location -O -J -n -4
"""
_OPTIONS: Final = {
    "method": ("-X", "--request"),
    "addresses": ("--url",),
    "headers": ("-H", "--header"),
    "user": ("-u", "--user", "--oauth2-bearer"),
    "cookies": ("-b", "--cookie"),
    "files": ("-F", "--form", "--form-string", "-T", "--upload-file"),
    "others": (
        "-A",
        "--user-agent",
        "-e",
        "--referer",
        "-m",
        "-o",
        "-w",
        "-x",
        "--proxy",
    ),
}
"""The options of curl that take a value, by how they are used here."""
_OF_BROWSERS: Final = re.compile(
    r"sec-.*|user-agent|referer|origin|accept-encoding|cache-control|pragma|dnt"
    r"|priority|upgrade-insecure-requests",
    re.IGNORECASE,
)
"""Headers that browsers send by themselves."""
_QUOTED: Final = re.compile(
    r"""'(?P<single>[^']*)'|\$?"(?P<double>(?:[^"\\]|\\.)*)"|[\\`][ \t]*\n|\\."""
    r"""|\$'(?P<escaped>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<end>(?<!\S)(?:[;&<>#]|\d>)|;(?!\S)|\|).*""",
    re.DOTALL,
)
"""Shell syntax that `shlex` does not read, and the end of a command."""
_VARIABLE: Final = re.compile(r"\$(?:\w+|[({]\w+)|`\w+|%[A-Z_]{3,}%")
"""The beginning of a text that a shell replaces."""
_ESCAPES: Final = re.compile(
    r"((?:\\x[0-9A-Fa-f]{1,2})+)|((?:\\u[0-9A-Fa-f]{4})+)|\\(.)", re.DOTALL
)
"""Escapes inside $'…': bytes, UTF-16 units, or one character (`_SIGNS`)."""
_SIGNS: Final = dict(zip("abefnrtv", "\a\b\x1b\f\n\r\t\v", strict=True))


class _Curl(argparse.ArgumentParser):
    """Reads the options of curl as curl does: -sSXPOST, --request POST.

    `data` and `json` are lists of texts to send; None stands for a file's content.
    """

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("-G", "--get", action="store_true")
        self.add_argument("-I", "--head", action="store_true")
        self.add_argument(*_FLAGS.split(), action="store_true")
        for name, options in _OPTIONS.items():
            self.add_argument(*options, dest=name, action="append", default=[])
        for options, read in _DATA.items():
            name = "json" if "--json" in options else "data"
            self.add_argument(*options, dest=name, action="append", type=read)
        self.set_defaults(data=[], json=[])

    def error(self, message: str) -> NoReturn:
        sentence = _("This curl command cannot be read: %(why)s.")
        raise NoCall(sentence % {"why": visible(message)[:200]})


def _text_or_file(text: str) -> str | None:
    return None if text.startswith("@") else text


def _encoded_text(text: str) -> str | None:
    """Encode a value of --data-urlencode; return None for a file."""
    name, equals, value = text.partition("=")
    if not equals:
        return None if "@" in text else quote(text, safe="")
    return f"{name}{equals if name else ''}{quote(value, safe='')}"


_DATA: Final[Mapping[tuple[str, ...], Callable[[str], str | None]]] = {
    ("-d", "--data", "--data-ascii", "--data-binary"): _text_or_file,
    ("--data-raw",): str,
    ("--data-urlencode",): _encoded_text,
    ("--json",): _text_or_file,
}


def _call_from_curl(text: str) -> PastedCall:
    words, end = _bash_words(text)
    if len(words) > MAX_WORDS:
        raise NoCall(_("A command has at most %d words here.") % MAX_WORDS)
    options, unknown_words = _Curl().parse_known_args(_with_values(words[1:]))
    if options.files:
        message = _(
            "-F and -T send files or multipart/form-data, and no call can. If the site"
            " takes a plain form, too, write -d in place of -F."
        )
        raise NoCall(message)
    # A word after an unknown option may be its value.
    addresses = options.addresses + [
        each
        for before, each in pairwise(["", *unknown_words])
        if not each.startswith("-") and ("://" in each or not before.startswith("-"))
    ]
    if not addresses:
        raise NoCall(_("This curl command has no address."))
    if len(addresses) > 1:
        raise NoCall(_("This curl command has several addresses. Paste one of them."))
    # Read escaped brackets as plain ones; curl would read plain ones as a pattern.
    call = _call_at(re.sub(r"\\([][{}])", r"\1", addresses[0]))
    left_out = call.left_out
    left_out += [_key_of("-u")] if options.user else []
    left_out += [_("cookies")] if options.cookies else []
    left_out += [word for word in words if word in {"-k", "-L", *_OPTIONS["others"]}]
    # The value of an unknown option may be secret: show only the name (as in -x).
    left_out += [
        visible(each.partition("=")[0])[: 40 if each.startswith("--") else 2]
        for each in unknown_words
        if each.startswith("-")
    ]
    left_out += [_("what follows “%(sign)s”") % {"sign": end}] if end else []
    media_type = _read_headers(call, options.headers)
    _read_body(call, options, media_type)
    has_body = (options.data or options.json) and not options.get
    usual = "HEAD" if options.head else "POST" if has_body else "GET"
    method = (options.method or [usual])[-1].upper()
    if method not in METHODS:
        message = _("%(method)s cannot be called, only %(methods)s.")
        details = {"method": visible(method)[:20], "methods": ", ".join(METHODS)}
        raise NoCall(message % details)
    if method != "GET":
        call.config["method"] = method
    return call


def _bash_words(text: str) -> tuple[list[str], str]:
    """Return the words of a Unix or Windows command, and the sign that ends it."""
    # Windows puts ^ before a character to escape it, and at the end of a line.
    if re.search(r"\^[\"\n]", text):
        text = re.sub(r"\^\n(?=\n)|\^(.)", r"\1", text, flags=re.DOTALL)
    end = next((each["end"] for each in _QUOTED.finditer(text) if each["end"]), "")
    try:
        return shlex.split(_QUOTED.sub(_quote_plainly, text)), end
    except ValueError:
        message = _("This curl command cannot be read: a quote is not closed.")
        raise NoCall(message) from None


def _quote_plainly(match: re.Match[str]) -> str:
    """Rewrite a match of `_QUOTED` so that `shlex` reads it like a shell."""
    if match["single"] is not None:
        return shlex.quote(match["single"])
    if match["double"] is not None:
        return shlex.quote(re.sub(r'\\(?:\n|([$`"\\]))', r"\1", match["double"]))
    if match["escaped"] is not None:
        return shlex.quote(_ESCAPES.sub(_read_escape, match["escaped"]))
    return " " if match["end"] or match[0].endswith("\n") else match[0]


def _read_escape(match: re.Match[str]) -> str:
    hex_bytes, units, sign = match.groups()
    if hex_bytes:
        octets = bytes(int(each, 16) for each in hex_bytes.split("\\x")[1:])
        with suppress(UnicodeDecodeError):
            return octets.decode()
        # Not UTF-8: Firefox writes é as \xe9.
        return octets.decode("latin-1")
    if units:
        return bytes.fromhex(units.replace("\\u", "")).decode("utf-16-be", "replace")
    return _SIGNS.get(sign, sign if sign in "'\"\\?" else match[0])


def _with_values(words: list[str]) -> Iterator[str]:
    """Yield the words; join a value that begins with "-" to its option."""
    options = {*chain(*_OPTIONS.values(), *_DATA)}
    remaining = iter(words)
    for word in remaining:
        value = next(remaining, None) if word in options else None
        if value is not None and value.startswith("-"):
            yield f"{word}={value}" if word.startswith("--") else f"{word}{value}"
            continue
        yield word
        if value is not None:
            yield value


def _read_headers(call: PastedCall, lines: list[str]) -> str:
    """Put the headers into the config; return the media type of the body."""
    media_type, pairs = "", list[tuple[str, str]]()
    for line in lines:
        name, _colon, value = (each.strip() for each in line.partition(":"))
        if name.lower() == "content-type":
            media_type = value
        elif name.lower() == "cookie":
            call.left_out.append(_("cookies"))
        elif _OF_BROWSERS.fullmatch(name):
            call.left_out.append(_("headers of the browser"))
        elif not value or (RESERVED_HEADERS.fullmatch(name) and not names_secret(name)):
            call.left_out.append(_("the header %s") % visible(name)[:40])
        else:
            pairs.append((name, value))
    if headers := [*_without_keys(call, pairs, _("the header %s"))]:
        call.config["headers"] = headers
    return media_type


def _read_body(call: PastedCall, options: Any, media_type: str) -> None:
    """Put the sent data into the config, without the content of files."""
    texts = [*options.data, *options.json]
    data = [each for each in texts if each is not None]
    if len(data) < len(texts):
        call.left_out.append(_("files"))
    text = ("" if options.json else "&").join(data)
    if options.get:
        _add_query(call, text)
    elif text:
        media_type = media_type or (JSON if options.json else "")
        call.config["body"] = _body_of(call, text, media_type)


def _open_members(
    call: PastedCall, members: list[tuple[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """Yield the members of a JSON object without secrets, which are left out."""
    for name, value in members:
        if names_secret(name, value):
            call.left_out.append(_key_of(visible(name)[:40]))
        elif isinstance(value, str) and names_secret(name, value, CALLS):
            call.left_out.append(_doubt_of(visible(name)[:40]))
        else:
            yield name, value


def _body_of(call: PastedCall, text: str, media_type: str) -> JsonObject:
    """Return the body for the config; without a media type, detect JSON by parsing."""
    bare = media_type.partition(";")[0].strip().lower()
    if not bare or is_json_type(bare):
        try:
            value = json.loads(
                text, object_pairs_hook=lambda each: dict(_open_members(call, each))
            )
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict | list) or (bare and value is not None):
            if not bare:
                call.remark = _("The body is JSON, so it is sent as application/json.")
            stated = {"type": media_type} if media_type not in ("", JSON) else {}
            return {"json": value, **stated}
    is_form = text[0] not in "{[<" and all("=" in each for each in text.split("&"))
    if bare in ("", FORM) and is_form:
        pairs = parse_qsl(text, keep_blank_values=True)
        return {"form": [*_without_keys(call, pairs)]}
    if bare in ("", FORM) or is_json_type(bare):
        for name in filter(names_secret, re.findall(r'"([^"\\]+)"\s*:', text)):
            message = _("The body is no JSON, and has “%(name)s”. Leave that out.")
            raise NoCall(message % {"name": visible(name)[:40]})
        call.remark = _("The body is no JSON and no form, so it is sent as this text.")
    return {"text": text, "type": media_type or FORM}
