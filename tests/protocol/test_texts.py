"""Tests of `mcp_app/protocol/texts.py`."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

import pytest

from mcp_app.protocol.texts import clean_text, json_text, takes_forever

TAGS: Final = "".join(chr(0xE0000 + ord(each)) for each in "obey")

STEERING: Final[list[tuple[str, str]]] = [
    # Colours, the cursor, the screen: CSI, with seven bits and with eight.
    *(("\x1b[31mred\x1b[0m", "red"), ("\x1b[38;2;1;2;3mred\x1b[m", "red")),
    *(("\x9b2Jgone", "gone"), ("\x1b[?25lhidden\x1b[ q", "hidden")),
    *(("cut off \x1b[31", "cut off "), ("\x1b[31é", "é")),
    # A title, a link, the clipboard: OSC with each of its ends.
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]8;;https://example.org/\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]52;c;bm90IHlvdXJz\x9ctext", "text"),
    ("\x9d0;title\x9ctext", "text"),
    # DCS, SOS, PM and APC.
    ("\x1bPq#0\x1b\\\x1bXa\x1b\\\x1b^b\x1b\\\x1b_c\x1b\\text", "text"),
    ("\x90q\x9c\x98a\x9c\x9eb\x9c\x9fc\x9ctext", "text"),
    # Without an end in their line only the beginning goes.
    ("\x1b]0;what follows", "0;what follows"),
    ("\x1b]0;a line\nanother\x07", "0;a line\nanother"),
    ("\x1b]\x1b[31mred", "red"),
    # Others: reset, character sets, two of them, and the last character of a text.
    ("\x1bcreset\x1b(Bset\x1b7\x1b8", "resetset"),
    ("\x1b\x1b[31mred\x1b", "red"),
    # Controls, and what stays of them.
    ("a\0b\x08c\x7fd\x85e\x0bf\x0cg", "abcd\ne\nf\ng"),
    ("tab\tline\nline\r\nend", "tab\tline\nline\r\nend"),
    # Tag characters, also those that are none yet.
    (f"Read{TAGS} this.\U000e0000\U000e0001\U000e007f", "Read this."),
    ("\U000dffff\U000e0080\U000e0100", "\U000dffff\U000e0080\U000e0100"),
]


def test_what_steers_or_hides_goes() -> None:
    found = [(text, clean_text(text)) for text, _ in STEERING]
    assert found == STEERING
    assert [clean_text(clean) for _, clean in STEERING] == [c for _, c in STEERING]


def test_every_control_character_goes_but_tab_and_line_breaks() -> None:
    controls = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
    for before in ("a", 'say "a"', "é", "a\\b"):
        text = f"{before}{{}}\nb"
        kept = [
            each
            for each in controls
            if clean_text(text.format(each)) != text.format("")
        ]
        # What ends a page or a line is one line break.
        assert kept == ["\t", "\n", "\x0b", "\x0c", "\r", "\x85"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "usual", "x" * 2_000, "one line\nand another\twith\r\ntabs"),
        "Zürich 東京 🦜 \u00a0\u3000\u200b\u2028 👩\u200d💻 \ufeff",
        "half \ud83d",
        # What JSON writes for a control character is no control character.
        '{"a":"\\u001b[31m"}',
    ],
)
def test_a_text_that_needs_nothing_stays_the_same_object(text: str) -> None:
    assert clean_text(text) is text


@pytest.mark.parametrize("length", [1_000, 20_000])
def test_no_text_takes_for_ever(length: int) -> None:
    """Each of them would, if what has no end were looked for again and again."""
    for part in ("\x1b[", "\x1b]", "\x9d", "\x1b]a", "\x1b[0", "\x1b ", "\x90\n", "\0"):
        assert "\x1b" not in clean_text(part * length)
        assert "\x1b" not in clean_text(f"\x1b]{part[-1] * length}")


VALUES: Final[list[Any]] = [
    {"a": 1, "b": [None, 1.5, "text"]},
    {"\x1b[31m": "\x1b[31mred\x7f\x9b0m\0", "é": f"{TAGS} é\u2028"},
    *("\x80", ["\\\x80", '"\x7f"', "\U000e007f"]),
]


@pytest.mark.parametrize("value", VALUES)
def test_json_says_the_same_and_needs_no_cleaning(value: Any) -> None:
    text = json_text(value)
    assert json.loads(text) == value
    assert clean_text(text) is text


def test_json_that_has_nothing_to_escape_is_written_as_always() -> None:
    assert json_text({"é": "\n🦜"}) == '{"é":"\\n🦜"}'
    assert json_text("\x7f\U000e0041") == '"\\u007f\\udb40\\udc41"'


def test_what_is_cleaned_away_is_all_that_is_escaped() -> None:
    every = "".join(
        chr(code)
        for code in (*range(0x300), *range(0xDFF00, 0xE0200), sys.maxunicode)
        if not 0xD800 <= code < 0xE000
    )
    assert json.loads(json_text(every)) == every
    assert clean_text(json_text(every)) == json_text(every)


# -- patterns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        *("^(a+)+$", "^(?:a*)*$", "(a+)*?b", "((a+))+", "(a{2,}){3,}", r"^(\w+\s?)*$"),
        *(r"^(\s?\w+)+$", "(x|a+)*", "((a+)?)+", "(?P<word>[a-z]+)+", "(?i:a+)+"),
        *("^(a|a)*$", "^(a|aa)+$", "(aa|aaa)+", r"(\w|\d)+", "([a-m]|[k-z])*"),
        "(.|x)*",
    ],
)
def test_patterns_that_could_take_forever(pattern: str) -> None:
    assert takes_forever(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "^a+$", "^(a+)?$", "^(a+){2}$", "^(a+){1,3}$", r"^([a-z]+\.)+[a-z]+$"),
        *(r"^[\w.]+@([\w-]+\.)+\w{2,}$", "^(ab*)+$", "^(a*b)*$", "(a|b)*", "(ab|cd)*"),
        *("(ab|ba)*", r"(\d|[a-z])*"),
        # What Python reads in another way is not judged.
        *(r"(\p{L}|\p{Lu})*", "([a[b]|[a])*"),
        # A look ahead reads nothing.
        *("((?=a+)b)*", r"(\(+\))*x", "[(a+)+]", "\\"),
        # Unbalanced, and repeating nothing.
        *("a+)+", "((a+", "*a", "(|*)"),
    ],
)
def test_patterns_that_do_not(pattern: str) -> None:
    assert not takes_forever(pattern)


@pytest.mark.parametrize("pattern", ["(" * 100_000, "(a|" * 50_000, "a?" * 100_000])
def test_long_patterns_are_read_once(pattern: str) -> None:
    # Of this thread alone: the machine may have other work.
    begin = time.thread_time()
    assert not takes_forever(pattern)
    assert time.thread_time() - begin < 20
