from __future__ import annotations

import pytest

from mcp_app.publishing.differences import Difference


def test_what_nobody_sees_is_written_out() -> None:
    difference = Difference("description", "", "Use it.", "Use\u200b it.")
    added = [each.text for each in difference.pieces_after()]
    assert added == ["Use⟦U+200B⟧ ", "it."]


# -- text diff -------------------------------------------------------------------------


def test_words_are_marked_inside_a_text() -> None:
    difference = Difference("description", "", "Use it always.", "Use it now and then.")
    assert difference.pieces_before() == [("Use it ", False), ("always.", True)]
    assert difference.pieces_after() == [("Use it ", False), ("now and then.", True)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a " * 9_990, "a b " * 4_990),
        ("word " * 20_000, "word " * 19_000 + "more"),
        ("a x " * 20_000, "a y " * 20_000),
    ],
)
def test_much_that_is_alike_is_one_difference(before: str, after: str) -> None:
    """To compare it word by word would take the cube of its length."""
    difference = Difference("description", "", before, after)
    for pieces, text in (
        (difference.pieces_before(), before),
        (difference.pieces_after(), after),
    ):
        assert "".join(each.text for each in pieces) == text
        assert len(pieces) <= 3


def test_a_long_text_is_compared_word_by_word() -> None:
    words = [f"word{number} " for number in range(3_000)]
    before = "".join(words)
    words[10], words[1_500] = "new ", "other "
    difference = Difference("description", "", before, "".join(words))
    changed = [each.text for each in difference.pieces_after() if each.is_changed]
    assert changed == ["new ", "other "]
