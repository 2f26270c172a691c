"""What a page showed when it was opened, against what comes back of it."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms

from mcp_app.admin.forms.opened_values import (
    field_digests,
    on_top,
    read_digests,
    write_digests,
)


class Parted(forms.Field):
    def parts(self, value: Any) -> dict[str, object]:
        return dict(value)

    def on_top(self, mine: Any, touched: set[str]) -> Any:
        return {**mine, "merged": sorted(touched)}


@pytest.mark.parametrize(
    ("field", "shown", "sent"),
    [
        (forms.CharField(required=False), None, ""),
        (forms.CharField(required=False), "a\nb", "a\r\nb"),
        (forms.IntegerField(), 7, "7"),
        (forms.BooleanField(required=False), True, "on"),
        (forms.MultipleChoiceField(), [2, 1], ["1", "2"]),
        (forms.MultipleChoiceField(), (), []),
        # What is no number is compared as it was typed.
        (forms.IntegerField(), "seven", "seven"),
    ],
)
def test_what_nobody_touched(field: forms.Field, shown: Any, sent: Any) -> None:
    assert field_digests(field, shown) == field_digests(field, sent)


@pytest.mark.parametrize(
    ("field", "shown", "sent"),
    [
        (forms.CharField(), "a", "A"),
        (forms.CharField(strip=False), "a", "a "),
        (forms.IntegerField(), 7, "8"),
        (forms.IntegerField(), 7, "seven"),
        (forms.MultipleChoiceField(), [1], ["1", "2"]),
    ],
)
def test_what_was_touched(field: forms.Field, shown: Any, sent: Any) -> None:
    assert field_digests(field, shown) != field_digests(field, sent)


def test_each_part_has_a_digest_of_its_own() -> None:
    before = field_digests(Parted(), {"file": "a", "uri": "b"})
    after = field_digests(Parted(), {"file": "a", "uri": "c"})
    assert before["file"] == after["file"]
    assert before["uri"] != after["uri"]
    # A page shows nothing of what it carries.
    assert all(len(each) == 16 for each in before.values())


def test_a_file_can_be_put_back_nowhere() -> None:
    assert field_digests(forms.FileField(), "a") == {}


def test_a_field_may_put_what_was_sent_on_top_of_what_is_saved() -> None:
    assert on_top(forms.CharField(), "mine", {""}) == "mine"
    merged = on_top(Parted(), {"uri": "c"}, {"uri"})
    assert merged == {"uri": "c", "merged": ["uri"]}


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "7", "null", "[" * 100_000, '{"a":' * 100_000]
)
def test_what_no_page_carries_is_nothing(text: str) -> None:
    assert read_digests(text) == {}


def test_there_and_back() -> None:
    shown = field_digests(Parted(), {"file": "a", "uri": "é"})
    assert read_digests(write_digests(shown)) == shown
