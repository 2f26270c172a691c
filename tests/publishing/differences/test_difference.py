from __future__ import annotations

from mcp_app.publishing.differences import Difference


def test_what_nobody_sees_is_written_out() -> None:
    difference = Difference("description", "", "Use it.", "Use\u200b it.")
    added = [each.text for each in difference.pieces_after()]
    assert added == ["Use⟦U+200B⟧ ", "it."]
