"""Files between two pages."""

from __future__ import annotations

from hashlib import shake_128

import pytest
from django.contrib.auth.models import User

from mcp_app.admin.editors import files
from mcp_app.models import Blob

pytestmark = pytest.mark.django_db

MOST = 1_000_000


def noise(size: int) -> bytes:
    """Return bytes that cannot be compressed."""
    return shake_128(b"noise").digest(size)


@pytest.fixture
def kim() -> User:
    return User.objects.create_user("kim")


def test_a_file_in_pieces(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIECE", 1_000)
    content = noise(5_500)
    name = files.keep(kim, content)
    assert Blob.objects.count() == len(name.split()) == 6
    assert files.kept_content(kim, name, MOST) == content
    files.forget(kim)
    assert files.kept_content(kim, name, MOST) is None


def test_pieces_that_are_alike(kim: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIECE", 2)
    content = b"abc" * 3_000
    name = files.keep(kim, content)
    assert len(set(name.split())) < len(name.split())
    assert files.kept_content(kim, name, MOST) == content


def test_one_file_for_each_person(kim: User) -> None:
    other = User.objects.create_user("maria")
    theirs = files.keep(other, b"a")
    first = files.keep(kim, b"a")
    second = files.keep(kim, b"b")
    assert files.kept_content(kim, first, MOST) is None
    assert files.kept_content(kim, theirs, MOST) is None
    assert files.kept_content(kim, second, MOST) == b"b"
    assert files.kept_content(other, theirs, MOST) == b"a"


def test_a_file_is_never_the_upload_that_somebody_serves(kim: User) -> None:
    served = Blob.objects.keep(b"a bundle that is a resource", "application/json")
    files.keep(kim, b"a bundle that is a resource")
    files.forget(kim)
    assert list(Blob.objects.all()) == [served]


def test_names_that_were_tampered_with(
    kim: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "PIECE", 1_000)
    name = files.keep(kim, noise(3_500))
    shuffled = " ".join(reversed(name.split()))
    upload = Blob.objects.keep(b"x").digest
    for tampered in ("", "x", upload, f"{name} {upload}", shuffled):
        assert files.kept_content(kim, tampered, MOST) is None


@pytest.mark.parametrize("name", ["\0", "a\0b", " "])
def test_names_that_no_database_takes(kim: User, name: str) -> None:
    files.keep(kim, b"file")
    assert files.kept_content(kim, name, MOST) is None


def test_more_than_a_file_may_have_is_not_unpacked(kim: User) -> None:
    name = files.keep(kim, bytes(100_000))
    assert files.kept_content(kim, name, 10) == bytes(11)
