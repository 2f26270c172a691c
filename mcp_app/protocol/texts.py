"""Texts from outside: misleading characters, and patterns that take forever."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

from mcp_app.protocol import jsonrpc
from mcp_app.protocol.content import Text

# -- plain text ------------------------------------------------------------------------
# Texts of results, without characters that control a terminal or hide from people.
#
# Models and people read such a text, and often a terminal shows it.  These are removed:
# sequences of ECMA-48 and xterm as a whole, control characters other than tabs and line
# breaks, and tag characters, which nobody sees and models understand.

_CONTROL: Final = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_CONTROL_BYTES: Final = bytes(
    each for each in range(0x80) if re.match(f"[{_CONTROL}]", chr(each))
)
_TAG: Final = "\U000e0000-\U000e007f"
_UNWANTED: Final = re.compile(f"[{_CONTROL}{_TAG}]")
# If a string for a terminal, such as a title, has no end in its line, only its opening
# is removed, not the rest of the text.
_SEQUENCE: Final = re.compile(
    r"(?:\x1b[PX^_\]]|[\x90\x98\x9d-\x9f])[^\x00-\x1f\x7f-\x9f]*+(?:[\x07\x9c]|\x1b\\)"
    r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]?"
    r"|\x1b[ -/]*+[0-~]?"
    f"|{_UNWANTED.pattern}"
)
_PAGE_BREAK: Final = re.compile("[\x0b\x0c\x85]")
"""Vertical tab, form feed and NEL: replaced by a line break."""
_UTF_16: Final = re.compile("(....)")
"""Four hexadecimal digits: one unit of UTF-16."""


class CleanBlocks(tuple[Text, ...]):
    """Blocks whose texts need no `clean_text`, because `json_text` wrote them."""

    __slots__ = ()


def clean_text(text: str) -> str:
    """Return a text without unwanted characters; the same object if it has none."""
    # For a kilobyte, `search` takes three microseconds, and these checks only one.
    if text.isascii():
        is_clean = len(text.encode().translate(None, _CONTROL_BYTES)) == len(text)
    else:
        is_clean = text.replace("\n", " ").isprintable()
    if is_clean or not _UNWANTED.search(text):
        return text
    return _SEQUENCE.sub("", _PAGE_BREAK.sub("\n", text))


def json_text(value: object) -> str:
    """Return the JSON of a value as a text that `clean_text` does not change.

    Unwanted characters are escaped, so the text stands for the same value.  Raises
    `UnserializableValue` as `jsonrpc.write` does.
    """
    text = jsonrpc.write(value).decode()
    if (text.isascii() and "\x7f" not in text) or text.isprintable():
        return text
    return _UNWANTED.sub(_escape_character, text)


def _escape_character(character: re.Match[str]) -> str:
    units = character.group().encode("utf-16-be").hex()
    return _UTF_16.sub(r"\\u\1", units)


# -- patterns --------------------------------------------------------------------------
# Regular expressions for which a backtracking engine could take forever.
#
# Our engine takes linear time or gives up (`schemas`); those of clients do not.  Only
# two cases are reported: a repeated group that can be a single repetition, `(a+)+`, and
# a repeated group with branches that overlap, `(a|aa)*`.

_TOKEN = re.compile(
    r"""
    (?P<set> \[ (?: \\. | [^\]\\] )* \] )
    | (?P<look> \( \? <? [=!] )
    | (?P<open> \( (?: \? (?: : | P?<\w+> | [a-z-]+: ) )? )
    | (?P<close> \) )
    | (?P<or> \| )
    | (?P<repeat> [*+?] | \{ \d+ (?: , \d* )? \} ) \??
    | (?P<width> \\[bBAzZ] | [\^$] )
    | (?P<one> \\ (?: [pP]\{ [^}]* \} | x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} | . ) | . )
    """,
    re.DOTALL | re.VERBOSE,
)
"""`look` opens a look ahead or behind; `width` has no width; `one` is one character."""
_UNBOUNDED = re.compile(r"[*+]|\{\d+,\}")
_MAY_BE_NOTHING = re.compile(r"[*?]|\{0+[,}].*")
_UNLIKE_PYTHON = re.compile(r"\[.*\[|--|&&|\|\||~~", re.DOTALL)
"""Sets within sets, and operations on sets, which Python's `re` reads differently."""


@dataclass(slots=True)
class _Item:
    """A part of a pattern; `text` is the pattern of one character or set, else ""."""

    text: str = ""
    optional: bool = False
    loops: bool = False
    """Whether the whole item can match as a single repetition."""
    branches: Sequence[_Branch] = ()


_Branch: TypeAlias = list[_Item]


@dataclass(slots=True)
class _Group:
    """An open group; `consumes` is False for a look ahead or behind."""

    consumes: bool = True
    branches: list[_Branch] = field(default_factory=lambda: [[]])


def takes_forever(pattern: str) -> bool:
    """Whether a backtracking engine surely takes exponential time for some text.

    A pattern with unbalanced brackets takes no time, because it cannot be compiled.
    """
    groups = [_Group()]
    for token in _TOKEN.finditer(pattern):
        branch = groups[-1].branches[-1]
        match token.lastgroup:
            case "open" | "look":
                groups.append(_Group(token.lastgroup == "open"))
            case "close" if len(groups) > 1:
                closed = _close_group(groups.pop())
                groups[-1].branches[-1].append(closed)
            case "or":
                groups[-1].branches.append([])
            case "repeat" if branch:
                if _repeat_item(branch[-1], token["repeat"]):
                    return True
            case _:
                one = token.lastgroup in {"one", "set"}
                branch.append(_Item(token.group() if one else ""))
    return False


def _close_group(group: _Group) -> _Item:
    if not group.consumes:
        return _Item()
    return _Item(
        optional=any(all(item.optional for item in each) for each in group.branches),
        loops=any(map(_is_one_loop, group.branches)),
        branches=group.branches,
    )


def _repeat_item(item: _Item, quantifier: str) -> bool:
    """Apply a quantifier to an item; return whether it is one of the two bad cases."""
    endless = _UNBOUNDED.fullmatch(quantifier) is not None
    if endless and item.branches and (item.loops or _branches_overlap(item.branches)):
        return True
    item.text = ""
    item.loops |= endless
    item.optional |= _MAY_BE_NOTHING.fullmatch(quantifier) is not None
    return False


def _is_one_loop(branch: _Branch) -> bool:
    required = [item for item in branch if not item.optional]
    # The loop must be the one required item, or any item if all are optional.
    return len(required) <= 1 and any(item.loops for item in required or branch)


def _branches_overlap(branches: Sequence[_Branch]) -> bool:
    """Whether two branches can match the same text, alone or repeated."""
    roots: set[str] = set()
    characters: set[str] = set()
    for branch in branches:
        texts = [item.text for item in branch]
        if len(texts) == 1:
            matched = _ascii_characters(texts[0])
            if matched & characters:
                return True
            characters |= matched
        if root := _repeated_root(texts):
            if root in roots:
                return True
            roots.add(root)
    return False


def _repeated_root(texts: Sequence[str]) -> str:
    """Return the shortest text whose repetition is the branch; "" for a pattern."""
    if not all(len(text) == 1 and text != "." for text in texts):
        return ""
    literal = "".join(texts)
    # The next place of a text in its double is as far away as its root is long.
    return literal[: (literal + literal).find(literal, 1)]


@lru_cache(maxsize=256)
def _ascii_characters(text: str) -> frozenset[str]:
    if not text or _UNLIKE_PYTHON.search(text):
        return frozenset()
    try:
        compiled = re.compile(text, re.ASCII)
    except re.error:
        return frozenset()
    return frozenset(filter(compiled.fullmatch, map(chr, range(128))))
