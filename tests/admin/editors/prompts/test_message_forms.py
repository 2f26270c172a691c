"""A message as a row of a form: what its kind has, and what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.message_forms import MessageForm, MessageSheet
from mcp_app.models import Blob

pytestmark = pytest.mark.django_db


def form(**sent: Any) -> MessageForm:
    return MessageForm({"text": "Hello", **sent})


def message(**sent: Any) -> Any:
    made = form(**sent)
    assert made.is_valid(), made.errors
    return made.message


def wrong(**sent: Any) -> list[str]:
    return [*form(**sent).errors]


def upload(media_type: str = "image/png") -> str:
    return Blob.objects.keep(b"\x89PNG\r\n\x1a\n", media_type).digest


def test_what_is_left_out() -> None:
    made = message()
    assert (made.kind, made.role, made.text) == ("text", "user", "Hello")


@pytest.mark.parametrize(
    ("sent", "column", "value"),
    [
        ({"role": "assistant"}, "role", "assistant"),
        ({"text": "a\r\nb "}, "text", "a\nb "),
        # What another kind has left behind is not read.
        ({"kind": "text", "uri": "shop://r"}, "uri", ""),
        ({"kind": "link", "uri": "shop://r", "name": "r"}, "text", ""),
        ({"kind": "contents", "uri": "shop://r"}, "text", "Hello"),
        ({"kind": "contents", "uri": "shop://r", "text": ""}, "text", ""),
        ({"was": "3"}, "was", "3"),
    ],
)
def test_what_is_read(sent: dict[str, str], column: str, value: object) -> None:
    assert getattr(message(**sent), column) == value


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        ({"text": ""}, ["text"]),
        ({"text": "a\u202eb"}, ["text"]),
        ({"kind": "contents"}, ["uri"]),
        ({"kind": "link"}, ["uri", "name"]),
        ({"kind": "link", "uri": "shop://r"}, ["name"]),
        ({"kind": "file"}, ["file"]),
        ({"kind": "no-such"}, ["kind"]),
        ({"role": "no-such"}, ["role"]),
        ({"mime_type": "no type"}, ["mime_type"]),
        # Nobody knows what an argument becomes.
        ({"mime_type": "{{type}}"}, []),
        ({"upload": "no digest"}, ["upload"]),
    ],
)
def test_what_is_wrong_is_told_at_its_field(
    sent: dict[str, str], fields: list[str]
) -> None:
    assert wrong(**sent) == fields


def test_a_file_that_is_there() -> None:
    made = message(kind="file", upload=upload(), mime_type="image/png")
    assert (made.kind, made.mime_type, made.text) == ("file", "image/png", "")
    assert form(upload=upload()).has_file()
    assert not form().has_file()


def test_only_images_and_audio_can_be_a_message() -> None:
    kept = upload("application/pdf")
    assert wrong(kind="file", upload=kept, mime_type="application/pdf") == ["file"]
    as_contents = {"kind": "contents", "uri": "shop://r", "text": ""}
    made = message(**as_contents, upload=kept, mime_type="application/pdf")
    assert (made.upload, made.text) == (kept, "")


def test_a_text_takes_the_place_of_the_file() -> None:
    made = message(
        kind="contents", uri="shop://r", upload=upload(), mime_type="text/plain"
    )
    assert (made.text, made.upload, made.mime_type) == ("Hello", "", "text/plain")


def test_no_messages() -> None:
    assert MessageSheet().initial_rows(None) == []
    assert MessageSheet().initial_rows({}) == []
