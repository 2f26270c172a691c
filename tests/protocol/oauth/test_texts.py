"""How codes and tokens look, and which lead to which."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_app.protocol.oauth.texts import (
    code_of,
    display_name,
    is_access,
    new_access,
    new_refresh,
    refresh_parts,
    successor,
)


def test_one_page_has_one_code() -> None:
    code = code_of("page", "a")
    assert code.startswith("mcp_ac_")
    assert len(code) == 50
    assert code == code_of("page", "a")
    assert len({code, code_of("page2", "a"), code_of("page", "b")}) == 3


def test_access_tokens() -> None:
    tokens = {new_access() for _ in range(9)}
    assert len(tokens) == 9
    assert all(map(is_access, tokens))
    for text in [
        *("", "mcp_at_", "mcp_at_" + "a" * 42, "mcp_at_" + "a" * 44),
        # An access token that people make has 47 characters and may begin so.
        *("mcp_at_" + "a" * 40, "mcp_rt_" + "a" * 43, "MCP_AT_" + "a" * 43),
        *("mcp_at_" + "a" * 43 + "\n", "mcp_at_" + "é" * 43, " mcp_at_" + "a" * 42),
    ]:
        assert not is_access(text), text


def test_refresh_tokens() -> None:
    token = new_refresh()
    name, secret = refresh_parts(token) or ("", "")
    assert token == "mcp_rt_" + name + secret
    assert (len(name), len(secret), len(token)) == (22, 43, 72)
    assert new_refresh() != token
    for text in [
        *("", "mcp_rt_", token[:-1], token + "a", token + "\n", token.upper()),
        *("mcp_at_" + name + secret, token[:-1] + "=", token[:-1] + "é", new_access()),
    ]:
        assert refresh_parts(text) is None, text
        with pytest.raises(ValueError, match="no refresh token"):
            successor(text, "a")


def test_a_successor_is_computed() -> None:
    first = new_refresh()
    second = successor(first, "a")
    assert second == successor(first, "a")
    chain = [first, second, successor(second, "a"), successor(first, "b")]
    parts = [refresh_parts(each) or ("", "") for each in chain]
    assert len({name for name, _ in parts}) == 1
    assert len({secret for _, secret in parts}) == 4


def test_no_text_tells_another() -> None:
    """A code and a successor of the same text have nothing in common."""
    first = new_refresh()
    _, secret = refresh_parts(first) or ("", "")
    assert code_of(secret, "a")[7:] != successor(first, "a")[29:]


# -- names -----------------------------------------------------------------------------


NAMES: list[tuple[object, str]] = [
    ("Claude", "Claude"),
    ("  Claude \t\n Code\u2028x\u00a0y\u3000z ", "Claude Code x y z"),
    *(("Société Générale", "Société Générale"), ("Cafe\u0301", "Café")),
    *(("東京 ツール", "東京 ツール"), ("שלום", "שלום")),
    ("<b>Claude</b> & Co", "<b>Claude</b> & Co"),
    ("Claude 🤖", "Claude 🤖"),
    # Quotation marks, and what looks like them.
    ('"Claude", says claude.ai', "'Claude', says claude.ai"),
    ("Claude”, says claude.ai “", "Claude', says claude.ai '"),
    ("«a» \u2039b\u203a „c‟ \u201ad\u201b \u2019e\u2018", "'a' 'b' 'c' 'd' 'e'"),
    ("「a」『b』〝c〞〟d ｢e｣ \uff02f\uff02 \uff07g\uff07", "'a'b'c'd 'e' 'f' 'g'"),
    ("a″b‴c‶dʺe˝f״g❝h❞i🙶j`k\u00b4l\u02bcm", "a'b'c'd'e'f'g'h'i'j'k'l'm"),
    ("a''b\"'\"c", "a'b'c"),
    # Control, bidirectional, invisible.
    ("a\x00b\x07c\x1bd\x7fe\x85f", "abcde f"),
    ("a\u202eb\u202cc\u2066d\u2069e\u200ef\u200fg\u061ch", "abcdefgh"),
    ("a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg", "abcdefg"),
    (
        "a\u3164b\uffa0c\u115fd\u1160e\u2800f\u034fg\ufe0fh\u180ei\U000e0041j",
        "abcdefghij",
    ),
    ("a\ue000b\U0010fffdc\U000e0fffd", "abcd"),
    ("a\ud800b", "ab"),
    # Marks.
    ("a" + "\u0330" * 30 + "b", "a\u0330\u0330b"),
    *(("\u0301\u0302abc \u0301d", "abc d"), ("e\u200d\u0301", "é")),
    ("\ufb2c\u0301\u0302", "\u05e9\u05bc\u05c1"),
    # Length.
    *(("a" * 61, "a" * 60), ("a" * 59 + " b", "a" * 59), ("\u200b" * 400 + "a", "a")),
    # Nothing.
    *(("", "a.example"), (" \t\n", "a.example"), ("\u200b\u202e\u3164", "a.example")),
    *(("\u0301", "a.example"), (None, "a.example"), (5, "a.example")),
    *((["Claude"], "a.example"), (True, "a.example")),
]


def test_names() -> None:
    for name, shown in NAMES:
        assert display_name(name, "a.example") == shown, name


def test_a_host_is_never_cut() -> None:
    assert display_name("", "a" * 200) == "a" * 200


def test_no_quotation_mark_is_left() -> None:
    """None of those that open or close in Unicode's categories."""
    for mark in map(chr, range(0x3000)):
        if unicodedata.category(mark) in {"Pi", "Pf"}:
            assert display_name(f"a{mark}b", "") == "a'b", mark


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_no_name_leaves_its_quotation_marks(name: str) -> None:
    shown = display_name(name, "a.example")
    assert 1 <= len(shown) <= 60
    assert shown == " ".join(shown.split())
    for character in shown:
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
        assert unicodedata.category(character) not in {"Pi", "Pf"}
    assert not set(shown) & set('"`„\u201a')
    assert display_name(shown, "a.example") == shown
