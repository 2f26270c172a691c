"""Skills as staff write them: their form, their files, and zips."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from mcp_app.models import Blob, Resource
from mcp_app.models.fields import digest
from tests.admin.pages import (
    Staff,
    add,
    errors,
    fill_in,
    form_page,
    page_of,
    save,
    words_of,
)
from tests.published import published

pytestmark = pytest.mark.django_db

WHEN = "Refund an order of the shop. Use it for returns and complaints."
TYPED = {"name": "refunds", "folder": "shop", "description": WHEN, "body": "# Refunds"}
RULES = b"30 days"


def file(content: bytes = RULES, name: str = "rules.md") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def skill(client: Client, **typed: Any) -> Resource:
    return add(client, Resource, "skill", **{**TYPED, **typed})


def test_staff_write_a_skill_with_files(admin_client: Client) -> None:
    row = skill(
        admin_client, frontmatter='{"license": "MIT"}', **{"files-0-file": file()}
    )
    assert row.uri == "skill://shop/refunds/SKILL.md"
    assert row.description == WHEN
    assert row.json("config") == {
        "body": "# Refunds",
        "files": [{"path": "rules.md", "upload": digest(RULES)}],
        "frontmatter": {"license": "MIT"},
    }
    assert bytes(Blob.objects.get().content) == RULES
    shown = words_of(admin_client, row)
    assert "7 bytes. If you choose another file" in shown

    check = file(b"print()", "check.py")
    typed = {"files-0-file": file(b"60 days"), "files-1-file": check}
    save(admin_client, row, folder="", **typed, **{"files-1-name": "scripts/a.py"})
    assert row.uri == "skill://refunds/SKILL.md"
    assert [each["path"] for each in row.json("config")["files"]] == [
        "rules.md",
        "scripts/a.py",
    ]
    save(admin_client, row, **{"files-0-DELETE": "on"})
    files = [{"path": "scripts/a.py", "upload": digest(b"print()")}]
    assert row.json("config")["files"] == files


@pytest.mark.parametrize(
    ("typed", "field", "sentence"),
    [
        ({"name": "Refunds"}, "name", "'Refunds' cannot be the name of a skill"),
        ({"folder": "my shop"}, "folder", "“my shop” has other characters"),
        ({"description": "x" * 1_025}, "description", "at most 1024 characters"),
        ({"frontmatter": "[]"}, "frontmatter", "Write a JSON object."),
        ({"frontmatter": '{"name": "a"}'}, "frontmatter", "have their own fields"),
        ({"files-0-name": "../a"}, "files", "'../a' cannot be the path of a file"),
        ({"files-0-name": "skill.md"}, "files", "'skill.md' is there more than once"),
    ],
)
def test_errors_stand_at_their_field(
    admin_client: Client, typed: dict[str, str], field: str, sentence: str
) -> None:
    sent = {**TYPED, "files-0-file": file(), **typed}
    found = errors(fill_in(admin_client, form_page("resource", "skill"), **sent))
    assert [*found] == [field]
    assert sentence in found[field]
    assert not Blob.objects.exists()


def test_a_file_must_be_chosen(admin_client: Client) -> None:
    typed = {**TYPED, "files-0-name": "rules.md"}
    found = errors(fill_in(admin_client, form_page("resource", "skill"), **typed))
    assert "Choose a file." in found["files"]


def test_who_may_not_change_it_reads_it(admin_client: Client, staff: Staff) -> None:
    row = skill(admin_client, **{"files-0-file": file()})
    client = staff("view_resource", "change_resource")
    shown = words_of(client, row)
    assert "# Refunds" in shown
    assert f"fingerprint {digest(RULES)}" in shown
    save(client, row, description=f"{WHEN} Now.")
    assert row.description == f"{WHEN} Now."
    assert row.json("config")["body"] == "# Refunds"
    for name in ("body", "files-0-name", "zip"):
        assert client.post(page_of(row), {name: "a"}).status_code == 403

    User.objects.get(username="kim").user_permissions.remove(
        Permission.objects.get(codename="change_resource")
    )
    assert "shop" in words_of(client, row)


def test_a_change_asks_the_users_of_clients_again(admin_client: Client) -> None:
    row = skill(admin_client, **{"files-0-file": file()})
    again, page = "Clients ask their users again.", page_of(row, "publish")
    assert again not in words_of(admin_client, page)
    published(row)
    save(admin_client, row, tags="shop")
    assert again not in words_of(admin_client, page)
    save(admin_client, row, **{"files-0-file": file(b"60 days")})
    shown = words_of(admin_client, page)
    assert again in shown
    assert "File rules.md" in shown


def zipped(*entries: tuple[str, bytes]) -> SimpleUploadedFile:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in entries:
            archive.writestr(path, content)
    return file(buffer.getvalue(), "refunds.zip")


SKILL = b"---\nname: refunds\ndescription: Refunds\nlicense: MIT\n---\n\n# New\n"


def test_a_zip_replaces_the_working_copy_and_nothing_is_published(
    admin_client: Client,
) -> None:
    row = published(skill(admin_client, **{"files-0-file": file()}))
    hidden, entry = ("a/.git", b""), ("a/docs/b.md", b"B")
    sent = zipped(("a/SKILL.md", SKILL.replace(b"refunds", b"returns")), entry, hidden)
    response = fill_in(admin_client, page_of(row), zip=sent)
    assert response["Location"] == page_of(row, "publish")
    shown = words_of(admin_client, page_of(row, "publish"))
    assert "Not taken: a/.git." in shown
    assert "those to “skill://shop/refunds/SKILL.md”" in shown
    row.refresh_from_db()
    assert row.uri == "skill://shop/returns/SKILL.md"
    assert (row.name, row.description, row.state) == ("returns", "Refunds", "changed")
    files = [{"path": "docs/b.md", "upload": digest(b"B")}]
    config = {"body": "# New\n", "files": files, "frontmatter": {"license": "MIT"}}
    assert row.json("config") == config
    assert Blob.objects.get(digest=digest(b"B")).size == 1

    save(admin_client, row, zip=file(SKILL, "SKILL.md"))
    assert (row.name, row.json("config")["files"]) == ("refunds", files)


@pytest.mark.parametrize(
    ("entries", "typed", "sentence"),
    [
        ([("a", b"")], {}, "The zip has no SKILL.md"),
        ([("SKILL.md", SKILL)], {"body": "Mine"}, "not both at once."),
    ],
)
def test_a_refused_zip_leaves_the_working_copy(
    admin_client: Client, entries: Any, typed: dict[str, str], sentence: str
) -> None:
    row = skill(admin_client)
    sent = {"zip": zipped(*entries), **typed}
    assert sentence in errors(fill_in(admin_client, page_of(row), **sent))["zip"]
    row.refresh_from_db()
    assert row.json("config") == {"body": "# Refunds"}
    assert not Blob.objects.exists()
