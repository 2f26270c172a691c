"""Tests of `mcp_app/admin/editors/files.py`."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import shake_128
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import QueryDict
from django.test import Client
from django.utils.datastructures import MultiValueDict

from mcp_app.admin.editors import files
from mcp_app.admin.editors.files import (
    FilePartField,
    FileValue,
    SentFile,
    attachment_uri,
    check_type,
    is_usable,
    stored_media_type,
)
from mcp_app.admin.editors.messages import Message
from mcp_app.models import Blob, Prompt, Resource, Tool
from mcp_app.models.fields import digest
from tests.admin.pages import errors, fill_in, form_page, saved

pytestmark = pytest.mark.django_db

MOST = 1_000_000


def noise(size: int) -> bytes:
    """Return bytes that cannot be compressed."""
    return shake_128(b"noise").digest(size)


@pytest.fixture
def kim() -> User:
    return User.objects.create_user("kim")


def test_a_file_in_pieces(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIECE", 2)
    content = b"abc" * 3_000
    name = files.store_user_file(kim, content)
    # Some pieces are alike.
    assert len(name.split()) > len(set(name.split())) == Blob.objects.count()
    assert files.user_file_content(kim, name, MOST) == content
    files.delete_user_file(kim)
    assert files.user_file_content(kim, name, MOST) is None


def test_one_file_for_each_person(kim: User) -> None:
    other = User.objects.create_user("maria")
    theirs = files.store_user_file(other, b"a")
    first = files.store_user_file(kim, b"a")
    second = files.store_user_file(kim, b"b")
    assert files.user_file_content(kim, first, MOST) is None
    assert files.user_file_content(kim, theirs, MOST) is None
    assert files.user_file_content(kim, second, MOST) == b"b"
    assert files.user_file_content(other, theirs, MOST) == b"a"


def test_a_file_is_never_the_upload_that_somebody_serves(kim: User) -> None:
    served = Blob.objects.keep(b"a bundle that is a resource", "application/json")
    files.store_user_file(kim, b"a bundle that is a resource")
    files.delete_user_file(kim)
    assert list(Blob.objects.all()) == [served]


def test_names_that_were_tampered_with(
    kim: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE", 1_000)
    name = files.store_user_file(kim, noise(3_500))
    shuffled = " ".join(reversed(name.split()))
    upload = Blob.objects.keep(b"x").digest
    for tampered in ("", " ", "x", "\0", "a\0b", upload, f"{name} {upload}", shuffled):
        assert files.user_file_content(kim, tampered, MOST) is None


def test_more_than_a_file_may_have_is_not_unpacked(kim: User) -> None:
    name = files.store_user_file(kim, bytes(100_000))
    assert files.user_file_content(kim, name, 10) == bytes(11)


# -- uploads ---------------------------------------------------------------------------


PDF = b"%PDF secret"


@pytest.fixture
def secret() -> str:
    """A file of a resource."""
    name = Blob.objects.keep(PDF, "application/pdf").digest
    Resource.objects.create(name="s", uri="x:s", config=json.dumps({"upload": name}))
    return name


def user_with(*codenames: str) -> User:
    user = User.objects.create_user("kim", password="x", is_staff=True)
    found = Permission.objects.filter(
        content_type__app_label="mcp_app", codename__in=codenames
    )
    user.user_permissions.set(found)
    return user


@pytest.mark.parametrize(
    ("rights", "usable"),
    [
        (["view_resource"], True),
        (["change_resource"], True),
        (["view_tool", "change_tool", "add_tool", "view_prompt"], False),
    ],
)
def test_a_file_is_for_those_who_see_what_has_it(
    secret: str, rights: list[str], usable: bool
) -> None:
    assert is_usable(user_with(*rights), secret) is usable
    assert not is_usable(AnonymousUser(), secret)


def test_a_published_version_has_its_file_too(secret: str) -> None:
    row = Resource.objects.get()
    Resource.rows().publish([row])
    row.config = '{"text": "a"}'
    row.save()
    assert is_usable(user_with("view_resource"), secret)
    row.delete()
    assert not is_usable(User.objects.get(), secret)


def test_pieces_of_a_bundle_are_no_uploads(admin_user: User) -> None:
    name = files.store_user_file(admin_user, b"a bundle")
    Resource.objects.create(name="s", uri="x:s", config=json.dumps({"upload": name}))
    assert not is_usable(admin_user, name)


def test_the_type_of_a_file(secret: str) -> None:
    assert stored_media_type(secret) == "application/pdf"
    assert stored_media_type("0" * 64) == ""
    check_type("image/png", "image/gif")
    check_type("image/png", "application/octet-stream")
    check_type("text/plain", "application/pdf")
    with pytest.raises(ValidationError, match="The file is text/html, so it cannot"):
        check_type("audio/wav", "text/html")


@pytest.fixture
def stranger(client: Client) -> Client:
    """Log someone in who may not look at resources."""
    codenames = [f"{do}_{what}" for do in ("add", "change") for what in STRANGERS]
    client.force_login(user_with(*codenames))
    return client


STRANGERS = ("tool", "prompt")
SECRET_BLOCK = {"type": "resource", "resource": {"uri": "x:s", "upload": "SECRET"}}


@pytest.mark.parametrize(
    ("model", "typed"),
    [
        ("tool", {"file-kept": "SECRET", "file-uri": "x:s"}),
        ("tool", {"text": "", "config": json.dumps({"content": [SECRET_BLOCK]})}),
        (
            "prompt",
            {
                "config-0-kind": "contents",
                "config-0-uri": "x:s",
                "config-0-upload": "SECRET",
            },
        ),
    ],
)
def test_nobody_reads_a_file_by_its_digest(
    stranger: Client, secret: str, model: str, typed: dict[str, Any]
) -> None:
    typed = {name: value.replace("SECRET", secret) for name, value in typed.items()}
    response = fill_in(stranger, form_page(model), name="a", **typed)
    said = " ".join(errors(response).values())
    assert "The file is no longer stored." in said or "No uploaded file" in said
    text = response.content.decode()
    assert PDF.decode() not in text
    assert "application/pdf, " not in text
    assert not Tool.objects.exists()
    assert not Prompt.objects.exists()


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"config-0-mime_type": "png"}, "“png” is not a media type"),
        ({"config-0-mime_type": "a/b" + "; c=d" * 90}, "at most 255"),
        ({"config-0-mime_type": "image/png"}, "so it cannot be sent as image/png"),
    ],
)
def test_a_message_says_what_its_file_is(
    admin_client: Client, secret: str, typed: dict[str, str], said: str
) -> None:
    kept = {"config-0-kind": "file", "config-0-upload": secret}
    url = form_page("prompt")
    found = errors(fill_in(admin_client, url, name="a", **kept, **typed))
    assert said in found["config"]
    sent = SimpleUploadedFile("a", b"1", "a/b\0")
    new = {"config-0-kind": "file", "config-0-file": sent}
    found = errors(fill_in(admin_client, url, name="a", **new))
    assert "is not a media type" in found["config"]


def test_the_type_of_contents_may_be_filled_in(admin_client: Client) -> None:
    typed = {
        "arguments-0-name": "kind",
        "config-0-kind": "contents",
        "config-0-uri": "x:a",
        "config-0-text": "a",
        "config-0-mime_type": "text/{{kind}}",
    }
    assert saved(fill_in(admin_client, form_page("prompt"), name="a", **typed))


def test_a_resource_takes_a_typed_type_in_place_of_a_strange_one(
    admin_client: Client,
) -> None:
    def sent() -> dict[str, Any]:
        file = SimpleUploadedFile("a", b"1", "strange")
        return {"name": "a", "uri": "x:a", "text": "", "upload": file}

    found = errors(fill_in(admin_client, form_page("resource"), **sent()))
    assert "“strange” is not a media type" in found["upload"]
    typed = {**sent(), "mime_type": "text/csv"}
    assert saved(fill_in(admin_client, form_page("resource"), **typed))
    assert Blob.objects.get().media_type == "text/csv"


# -- file fields -----------------------------------------------------------------------


PNG = b"\x89PNG\r\n\x1a\n"


def given(
    stored: Message | None = None,
    file: tuple[str, bytes, str] | None = None,
    **typed: str,
) -> FileValue:
    """Type into the fields of a file and send them; the others stay as they were."""
    field = FilePartField()
    # Whoever has something with this file may use it.
    field.set_stored_value(
        stored, lambda name: stored is not None and name == stored.upload
    )
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
    name, kind = Blob.objects.keep(PDF, "application/pdf").digest, "application/pdf"
    return Message(kind="contents", upload=name, mime_type=kind, uri="x:terms")


@pytest.fixture
def png() -> Message:
    """A stored image."""
    name = Blob.objects.keep(PNG, "image/png").digest
    return Message(kind="file", upload=name, mime_type="image/png")


LOGO = ("logo.png", PNG, "image/png")
TERMS = ("Our terms (ä).pdf", PDF, "application/pdf")


def of_type(media_type: str) -> tuple[str, bytes, str]:
    return "a", PDF, media_type


def test_another_file_has_an_address_made_from_its_name() -> None:
    made = part(file=TERMS)
    assert (made.kind, made.mime_type) == ("contents", "application/pdf")
    assert made.uri == "attachment:///Our%20terms%20%28%C3%A4%29.pdf"
    assert part(file=TERMS, uri="x:terms").uri == "x:terms"
    assert attachment_uri("") == "attachment:///file"
    assert attachment_uri("a\ud800\0") == "attachment:///a%3F%00"


def test_what_a_browser_says_is_only_believed_where_it_is_a_type() -> None:
    with pytest.raises(ValidationError, match="“<b>” is not a media type"):
        part(file=of_type("<b>"))
    upload = given(file=of_type("<b>"), type="a/b").upload
    assert upload is not None
    assert upload.media_type == "application/octet-stream"
    assert part(file=of_type("<b>"), type="a/b").mime_type == "a/b"
    assert part(file=of_type("")).mime_type == "application/octet-stream"


def test_a_file_takes_the_place_of_another(pdf: Message, png: Message) -> None:
    newer = ("newer.pdf", PDF + b"2", "application/pdf")
    made = part(stored=pdf, file=newer, remove="on")
    assert made == replace(pdf, upload=digest(PDF + b"2"))
    # An image has no use for the address of what was there, unless somebody says so.
    assert part(stored=pdf, file=LOGO) == png
    assert part(stored=pdf, file=LOGO, uri="x:logo").uri == "x:logo"
    assert part(stored=png, file=TERMS).uri.startswith("attachment:///Our")
    embedded = Message(kind="contents", upload="", mime_type="image/png", uri="x:logo")
    assert part(stored=embedded, file=LOGO).uri == "x:logo"


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
        ({"file": of_type("a/b\0")}, "“a/b⟦U+0000⟧” is not a media type"),
        ({"file": of_type("a/\u200bb")}, "“a/⟦U+200B⟧b” is not a media type"),
        ({"file": of_type("a/b" + "; c=d" * 90)}, "a media type has at most 255"),
        ({"file": TERMS, "uri": "x:" + "y" * 4_095}, "a URI has at most 4096"),
    ],
)
def test_what_is_no_file(typed: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        given(**typed)
    assert said in caught.value.messages[0]


def test_a_file_that_the_person_may_not_see_is_as_good_as_gone(pdf: Message) -> None:
    field = FilePartField()
    field.set_stored_value(None, lambda name: False)
    sent = SentFile(kept=pdf.upload, media_type="application/pdf", uri="x:a")
    with pytest.raises(ValidationError, match="The file is no longer stored"):
        field.clean(sent)
    text = field.widget.render("file", sent, {"id": "id_file"})
    assert "The file is no longer stored." in text
    assert f"application/pdf, {len(PDF)}" not in text


def test_a_type_that_is_stored_stays_whatever_the_file_was() -> None:
    name = Blob.objects.keep(PDF, "application/pdf").digest
    stored = Message(kind="file", upload=name, mime_type="image/png")
    assert part(stored=stored) == stored
    with pytest.raises(ValidationError, match="cannot be sent as image/gif"):
        given(stored, type="image/gif")
