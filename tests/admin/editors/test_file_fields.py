from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from mcp_app.admin.editors.files import FilePartField, FileValue, SentFile, made_up_uri
from mcp_app.admin.editors.messages import Message
from mcp_app.models import Blob
from mcp_app.models.fields import digest

pytestmark = pytest.mark.django_db

PNG = b"\x89PNG\r\n\x1a\n"
PDF = b"%PDF"


def given(
    stored: Message | None = None,
    file: tuple[str, bytes, str] | None = None,
    **typed: str,
) -> FileValue:
    """Type into the fields of a file and send them; the others stay as they were."""
    field = FilePartField()
    # Whoever has something with this file may use it.
    field.shows(stored, lambda name: stored is not None and name == stored.upload)
    sent = {"kept": "", "type": "", "uri": ""}
    if stored is not None:
        sent = {"kept": stored.upload, "type": stored.mime_type, "uri": stored.uri}
    data = QueryDict(mutable=True)
    data.update({f"file-{name}": value for name, value in {**sent, **typed}.items()})
    files: MultiValueDict[str, Any] = MultiValueDict()
    if file is not None:
        files["file"] = SimpleUploadedFile(*file)
    found: FileValue = field.clean(
        field.widget.value_from_datadict(data, files, "file")
    )
    return found


def part(**typed: Any) -> Message:
    made = given(**typed).part
    assert made is not None
    return made


@pytest.fixture
def pdf() -> Message:
    """A stored file that is no image and no audio."""
    name = Blob.objects.keep(PDF, "application/pdf").digest
    return Message(
        kind="contents", upload=name, mime_type="application/pdf", uri="x:terms"
    )


@pytest.fixture
def png() -> Message:
    """A stored image."""
    name = Blob.objects.keep(PNG, "image/png").digest
    return Message(kind="file", upload=name, mime_type="image/png")


LOGO = ("logo.png", PNG, "image/png")
TERMS = ("Our terms (ä).pdf", PDF, "application/pdf")


def test_an_image_needs_no_address() -> None:
    assert part(file=LOGO) == Message(
        kind="file", upload=digest(PNG), mime_type="image/png"
    )
    assert part(file=LOGO, uri="x:logo").kind == "contents"


def test_another_file_has_an_address_made_from_its_name() -> None:
    assert part(file=TERMS) == Message(
        kind="contents",
        upload=digest(PDF),
        mime_type="application/pdf",
        uri="attachment:///Our%20terms%20%28%C3%A4%29.pdf",
    )
    assert part(file=TERMS, uri="x:terms").uri == "x:terms"
    assert made_up_uri("") == "attachment:///file"
    assert made_up_uri("a\ud800\0") == "attachment:///a%3F%00"


def test_what_a_browser_says_is_only_believed_where_it_is_a_type() -> None:
    with pytest.raises(ValidationError, match="“<b>” is not a media type"):
        part(file=("a", PDF, "<b>"))
    upload = given(file=("a", PDF, "<b>"), type="a/b").upload
    assert upload is not None
    assert upload.media_type == "application/octet-stream"
    assert part(file=("a", PDF, "<b>"), type="a/b").mime_type == "a/b"


def test_a_file_stays_and_what_is_said_of_it_changes(pdf: Message) -> None:
    assert given(pdf) == FileValue(pdf)
    assert part(stored=pdf, type="text/plain").mime_type == "text/plain"
    assert part(stored=pdf, uri="x:other").uri == "x:other"
    # Empty: what the file is.
    assert part(stored=pdf, type="").mime_type == "application/pdf"
    untyped = Message(kind="contents", upload=pdf.upload, uri="x:terms")
    assert part(stored=untyped) == untyped


def test_a_file_goes(pdf: Message) -> None:
    assert given(pdf, remove="on") == FileValue()
    assert given() == FileValue()


def test_a_file_takes_the_place_of_another(pdf: Message, png: Message) -> None:
    newer = ("newer.pdf", PDF + b"2", "application/pdf")
    assert part(stored=pdf, file=newer, remove="on") == Message(
        kind="contents",
        upload=digest(PDF + b"2"),
        mime_type="application/pdf",
        uri="x:terms",
    )
    # An image has no use for the address of what was there, unless somebody says so.
    assert part(stored=pdf, file=LOGO) == png
    assert part(stored=pdf, file=LOGO, uri="x:logo").uri == "x:logo"
    assert part(stored=png, file=TERMS).uri.startswith("attachment:///Our")
    embedded = Message(kind="contents", upload="", mime_type="image/png", uri="x:logo")
    assert part(stored=embedded, file=LOGO).uri == "x:logo"


def test_the_bytes_come_along() -> None:
    upload = given(file=LOGO).upload
    assert upload is not None
    assert (upload.content, upload.media_type) == (PNG, "image/png")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"file": LOGO, "type": "png"}, "“png” is not a media type"),
        ({"file": LOGO, "uri": "logo"}, "“logo” is not an absolute URI"),
        ({"type": "image/png"}, "Choose a file."),
        ({"uri": "x:logo"}, "Choose a file."),
        ({"kept": "../etc/passwd"}, "This is not the name of a file."),
        ({"kept": "0" * 64}, "The file is no longer stored. Choose it again."),
        ({"file": TERMS, "type": "image/png"}, "The file is application/pdf, so it"),
        ({"file": ("a", PDF, "a/b\0")}, "“a/b⟦U+0000⟧” is not a media type"),
        ({"file": ("a", PDF, "a/\u200bb")}, "“a/⟦U+200B⟧b” is not a media type"),
        ({"file": ("a", PDF, "a/b" + "; c=d" * 90)}, "a media type has at most 255"),
        ({"file": TERMS, "uri": "x:" + "y" * 4_095}, "a URI has at most 4096"),
    ],
)
def test_what_is_no_file(typed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        given(**typed)
    assert said in caught.value.messages[0]


def test_a_file_that_is_there_keeps_an_address(pdf: Message) -> None:
    with pytest.raises(
        ValidationError, match="neither an image nor audio needs an address"
    ):
        given(pdf, uri="")


def test_a_file_that_the_person_may_not_see_is_as_good_as_gone(pdf: Message) -> None:
    field = FilePartField()
    field.shows(None, lambda name: False)
    sent = SentFile(kept=pdf.upload, media_type="application/pdf", uri="x:a")
    with pytest.raises(ValidationError, match="The file is no longer stored"):
        field.clean(sent)
    text = field.widget.render("file", sent, {"id": "id_file"})
    assert "The file is no longer stored." in text
    assert "application/pdf, 4" not in text


def test_a_type_that_is_stored_stays_whatever_the_file_was() -> None:
    name = Blob.objects.keep(PDF, "application/pdf").digest
    stored = Message(kind="file", upload=name, mime_type="image/png")
    assert part(stored=stored) == stored
    with pytest.raises(ValidationError, match="cannot be sent as image/gif"):
        given(stored, type="image/gif")


def test_what_was_changed(pdf: Message) -> None:
    field = FilePartField()
    field.shows(pdf)
    same = SentFile(kept=pdf.upload, media_type="application/pdf", uri="x:terms")
    assert not field.has_changed(None, same)
    assert field.has_changed(None, SentFile())


def test_the_page_shows_what_is_there(pdf: Message, png: Message) -> None:
    field = FilePartField()
    widget = field.file_widget
    for stored, text in (
        (None, 'name="file-kept" value=""'),
        (png, 'src="data:image/png;base64,iVBORw0KGgo="'),
        (pdf, "application/pdf, 4"),
        (Message(upload="0" * 64), "The file is no longer stored."),
    ):
        field.shows(stored)
        assert text in widget.render("file", None, {"id": "id_file"})
    sent = SentFile(SimpleUploadedFile(*LOGO), pdf.upload, "a/b", "x:<b>", remove=True)
    text = widget.render("file", sent, {"id": "id_file"})
    assert "Choose the file again." in text
    assert 'value="x:&lt;b&gt;"' in text
    assert " checked>" in text
    assert widget.value_omitted_from_data({}, {}, "file")
