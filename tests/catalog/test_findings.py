from __future__ import annotations

from django.utils import translation

from mcp_app.catalog.findings import Level, advice, count_text, in_order, must_fix


def test_advice_is_what_remains_where_nothing_is_published() -> None:
    assert must_fix("kind", "config", "No.").as_advice() == advice(
        "kind", "config", "No."
    )


def test_the_worst_comes_first_and_the_rest_as_it_came() -> None:
    found = [
        advice("twice", "", "a"),
        must_fix("kind", "", "b"),
        advice("kind", "", ""),
    ]
    assert in_order(found) == [found[1], found[0], found[2]]


def test_levels_have_their_words() -> None:
    assert [str(level.label) for level in Level] == [
        "Must be fixed before publishing",
        "Advice",
    ]


def test_numbers_are_written_as_the_language_has_them() -> None:
    with translation.override("de"):
        assert count_text(1200) == "1.200"
