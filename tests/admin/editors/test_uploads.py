from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcp_app.admin.editors import files
from mcp_app.admin.editors.files import check_type, is_usable, type_of, upload_of
from mcp_app.models import Blob, Prompt, Resource, Tool
from tests.admin.pages import errors, fill_in, form_page, page, saved, shown_values

pytestmark = pytest.mark.django_db

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
    name = files.keep(admin_user, b"a bundle")
    Resource.objects.create(name="s", uri="x:s", config=json.dumps({"upload": name}))
    assert not is_usable(admin_user, name)


def test_the_type_of_a_file(secret: str) -> None:
    assert (type_of(secret), type_of("0" * 64)) == ("application/pdf", "")
    check_type("image/png", "image/gif")
    check_type("image/png", "application/octet-stream")
    check_type("text/plain", "application/pdf")
    with pytest.raises(ValidationError, match="The file is text/html, so it cannot"):
        check_type("audio/wav", "text/html")


def test_a_type_that_nobody_says() -> None:
    upload = upload_of(SimpleUploadedFile("a", b"1", ""))
    assert upload is not None
    assert upload.media_type == "application/octet-stream"


@pytest.fixture
def stranger(client: Client) -> Client:
    """Log someone in who may not look at resources."""
    codenames = [f"{do}_{what}" for do in ("add", "change") for what in STRANGERS]
    client.force_login(user_with(*codenames))
    return client


STRANGERS = ("tool", "prompt")


@pytest.mark.parametrize(
    ("model", "typed"),
    [
        ("tool", {"file-kept": "SECRET", "file-uri": "x:s"}),
        (
            "tool",
            {
                "text": "",
                "config": '{"content":[{"type":"resource","resource":'
                '{"uri":"x:s","upload":"SECRET"}}]}',
            },
        ),
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


def test_a_copy_has_the_file(admin_client: Client) -> None:
    name = Blob.objects.keep(b"1", "image/png").digest
    block = {"type": "image", "upload": name, "mimeType": "image/png"}
    tool = Tool.objects.create(name="a", config=json.dumps({"content": [block]}))
    url = page("tool", "change", tool.pk)
    sent = {**shown_values(admin_client.get(url)), "name": "b", "_saveasnew": "1"}
    assert saved(admin_client.post(url, sent))
    assert Tool.objects.get(name="b").json("config") == tool.json("config")


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
    found = errors(
        fill_in(admin_client, form_page("prompt"), name="a", **kept, **typed)
    )
    assert said in found["config"]
    sent = SimpleUploadedFile("a", b"1", "a/b\0")
    new = {"config-0-kind": "file", "config-0-file": sent}
    found = errors(fill_in(admin_client, form_page("prompt"), name="a", **new))
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
