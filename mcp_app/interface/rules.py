"""Rules for what people write into a definition: names, texts, tags and URIs.

Each function returns None, or a sentence that names the value and the rule.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_app.protocol import uri_templates

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""Names of a tool's parameters that all clients take."""
TAG = re.compile(r"[\w.:-]{1,64}")
MAX_SUGGESTIONS = 100
MAX_SUGGESTION_LENGTH = 200
"""Characters of one suggestion."""
MAX_MEDIA_TYPE_LENGTH = 255
MESSAGE = 200
"""Characters of a value that a message shows."""
PERMISSION = re.compile(r"[a-z_]\w*\.\w+", re.ASCII | re.IGNORECASE)

_CHARACTER = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_AUTHORITY = (
    r"//(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?:\[[0-9A-Fa-fv:.]+\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)"
    r"(?::[0-9]*)?"
)
_WORD = r"[A-Za-z0-9!#$&^_.+-]{1,127}"
_QUOTED = r'"[ !#-\[\]-~]*"'
MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}(?:; ?{_WORD}=(?:{_WORD}|{_QUOTED}))*")
URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:"
    rf"(?:{_AUTHORITY}(?:/{_CHARACTER}*)*|/?(?:{_CHARACTER}+(?:/{_CHARACTER}*)*)?)"
    rf"(?:\?(?:{_CHARACTER}|[/?])*)?(?:#(?:{_CHARACTER}|[/?])*)?"
)
"""An absolute URI of RFC 3986, with or without a fragment."""

_HIDDEN = re.compile(
    "["
    "\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2028\u2029"
    "\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # no width
    "\ud800-\udfff"  # halves of a surrogate pair
    "\U000e0000-\U000e0fff"  # tags and variation selectors supplement
    "]"
    # Joiners belong to emoji and to some scripts; beside ASCII they only hide.
    "|(?<![^\u0000-\u007f])[\u200c\u200d]|[\u200c\u200d](?![^\u0000-\u007f\u200c\u200d])"
)
_LINE_BREAKS = re.compile(r"[\t\r\n]")


def name_problem(name: str) -> str | None:
    """Check the name of a tool or a prompt (SEP-986)."""
    if NAME.fullmatch(name):
        return None
    return (
        f"“{visible(name)}” cannot be a name: only the letters A-Z and a-z, digits, "
        "and _ - . are allowed, 1 to 128 of them."
    )


def argument_problem(name: str) -> str | None:
    """Check the name of a prompt's argument."""
    if ARGUMENT.fullmatch(name):
        return None
    return (
        f"“{visible(name)}” cannot name an argument: a letter A-Z or a-z or _ comes "
        "first, then letters, digits, _ and -, at most 128 in all."
    )


def variable_problem(name: str) -> str | None:
    """Check the name of a URI template's variable (RFC 6570)."""
    if uri_templates.NAME.fullmatch(name):
        return None
    return (
        f"“{visible(name)}” cannot name a variable: only letters A-Z and a-z, digits "
        "and _ are allowed, with single dots between them."
    )


def tag_problem(tag: str) -> str | None:
    """Check one tag."""
    if TAG.fullmatch(tag):
        return None
    return (
        f"“{visible(tag)}” cannot be a tag: only letters, digits and _ - . : are "
        "allowed, at most 64."
    )


def permission_problem(permission: str) -> str | None:
    """Check the form of a Django permission, not whether it exists."""
    if not permission or PERMISSION.fullmatch(permission):
        return None
    return (
        f"“{visible(permission)}” is not a permission. It is written as"
        " app_label.codename, for example shop.view_order."
    )


def media_type_problem(media_type: str) -> str | None:
    """Check that a text is a media type (RFC 6838), perhaps with parameters; or ""."""
    if len(media_type) > MAX_MEDIA_TYPE_LENGTH:
        return _length_problem("media type", media_type, MAX_MEDIA_TYPE_LENGTH)
    if not media_type or MEDIA_TYPE.fullmatch(media_type):
        return None
    return (
        f"“{visible(media_type)}” is not a media type. It is written as type/subtype,"
        " for example text/markdown or application/json."
    )


def uri_problem(uri: str) -> str | None:
    """Check that a text is an absolute URI (RFC 3986), and not too long to be read."""
    if len(uri) > uri_templates.URI_LENGTH:
        return _length_problem("URI", uri, uri_templates.URI_LENGTH)
    if URI.fullmatch(uri):
        return None
    return (
        f"“{visible(uri)}” is not an absolute URI. It needs a scheme, and characters"
        " that RFC 3986 does not allow must be percent-encoded, for example"
        " shop://policy/returns."
    )


def text_problem(text: str, *, lines: bool = False) -> str | None:
    """Find a character that nobody sees; `lines` allows line breaks and tabs.

    Such characters can carry orders to a model that no person reads.
    """
    match = _HIDDEN.search(text) or (None if lines else _LINE_BREAKS.search(text))
    if match is None:
        return None
    character = match.group()
    name = unicodedata.name(character, "a character without a name")
    return (
        f"There is a hidden character U+{ord(character):04X} ({name}) at position"
        f" {match.start() + 1}. Such characters can carry hidden instructions. Remove"
        " it."
    )


def suggestions_problem(suggestions: Sequence[str]) -> str | None:
    """Check what is suggested for an argument or a variable: texts of one line."""
    if len(suggestions) > MAX_SUGGESTIONS:
        return (
            f"There are {len(suggestions)} suggestions; at most {MAX_SUGGESTIONS} are "
            "allowed."
        )
    for index, each in enumerate(suggestions):
        if not each:
            return "A suggestion is empty; write its text, or remove it."
        if len(each) > MAX_SUGGESTION_LENGTH:
            return _length_problem("suggestion", each, MAX_SUGGESTION_LENGTH)
        if problem := text_problem(each):
            return f"“{visible(each)}”: {problem}"
        if each in suggestions[:index]:
            return f"“{visible(each)}” is suggested more than once."
    return None


def visible(text: str, limit: int | None = MESSAGE) -> str:
    """Return a text with its hidden characters written as ⟦U+202E⟧.

    It is cut after `limit` characters; None leaves it whole.
    """
    escaped = _HIDDEN.sub(lambda hidden: f"⟦U+{ord(hidden.group()):04X}⟧", text)
    return escaped if limit is None or len(escaped) <= limit else f"{escaped[:limit]}…"


def one_line(text: str, limit: int) -> str:
    """Return a text as one line without hidden characters, cut to `limit` characters.

    For texts that must be kept in any case; `text_problem` refuses them instead.
    """
    line = _without_hidden(text)
    # The cut may put a joiner beside ASCII, where it counts as hidden.
    return line if len(line) <= limit else _without_hidden(f"{line[: limit - 1]}…")


def _without_hidden(text: str) -> str:
    while _HIDDEN.search(text):
        # If one is removed, the character beside it may become a hidden one.
        text = _HIDDEN.sub(lambda match: " " if match.group().isspace() else "", text)
    return " ".join(text.split())


def _length_problem(what: str, text: str, limit: int) -> str:
    start, size = visible(text, 40), len(text)
    return f"“{start}” has {size} characters; a {what} has at most {limit}."


# -- access requirements ---------------------------------------------------------------
# The demands on callers who see a definition or use a server.


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRequirements:
    """What a caller must have or meet; all of it has to hold.

    `permissions` are Django's ("shop.view_order"); of each set in `groups` the user is
    in one group at least, or is a superuser; `rules` are the keys of functions in code.
    """

    permissions: tuple[str, ...] = ()
    groups: tuple[frozenset[str], ...] = ()
    rules: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.permissions or self.groups or self.rules)

    def combined_with(self, demands: AccessRequirements) -> AccessRequirements:
        """Return requirements that demand what both demand."""
        return AccessRequirements(
            permissions=tuple(dict.fromkeys((*self.permissions, *demands.permissions))),
            groups=tuple(dict.fromkeys((*self.groups, *demands.groups))),
            rules=tuple(dict.fromkeys((*self.rules, *demands.rules))),
        )


NO_REQUIREMENTS = AccessRequirements()


def read_requirements(options: Mapping[str, Any]) -> AccessRequirements:
    """Return what a permission, groups and the key of a rule demand.

    An option that is missing or empty demands nothing.
    """
    permission, rule = options.get("permission"), options.get("rule")
    groups = frozenset(options.get("groups") or ())
    if not (permission or groups or rule):
        return NO_REQUIREMENTS
    return AccessRequirements(
        permissions=(permission,) if permission else (),
        groups=(groups,) if groups else (),
        rules=(rule,) if rule else (),
    )
