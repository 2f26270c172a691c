"""A message as a row of a form: what another kind or choice has left behind."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_app.admin.editors.message_forms import MessageForm
from mcp_app.models import Blob

pytestmark = pytest.mark.django_db


def message(**sent: Any) -> Any:
    made = MessageForm({"text": "Hello", **sent})
    assert made.is_valid(), made.errors
    return made.message


def wrong(**sent: Any) -> list[str]:
    return [*MessageForm({"text": "Hello", **sent}).errors]


def test_what_another_kind_has_left_behind_is_not_read() -> None:
    assert message(uri="shop://r").uri == ""
    assert message(kind="link", uri="shop://r", name="r", was="3").text == ""
    assert message(kind="contents", uri="shop://r", text="").text == ""


def test_choices_that_there_are_not() -> None:
    assert wrong(kind="no-such") == ["kind"]
    assert wrong(role="no-such") == ["role"]


def test_only_images_and_audio_can_be_a_message() -> None:
    name = Blob.objects.keep(b"%PDF", "application/pdf").digest
    kept = {"upload": name, "mime_type": "application/pdf"}
    assert wrong(kind="file", **kept) == ["file"]
    made = message(kind="contents", uri="shop://r", text="", **kept)
    assert (made.upload, made.text) == (name, "")
    assert MessageForm(kept).has_file()
    assert not MessageForm({}).has_file()
