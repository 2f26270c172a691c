"""A file between two pages: kept in the database, for one person and for a while.

A hidden field would hold no more than Django lets a form have, and a process has no
memory that the others share.
"""

from __future__ import annotations

import zlib
from typing import Final

from django.contrib.auth.base_user import AbstractBaseUser

from mcp_app.models import Blob
from mcp_app.models.fields import digest

PIECE: Final = 1024 * 1024
"""Bytes of a row: databases limit what one statement may bring."""
TYPE: Final = "application/x-mcp-bundle-piece"


def keep(user: AbstractBaseUser, content: bytes) -> str:
    """Store a file in place of the person's last one; return what it is called.

    Its bytes are compressed, with whose they are before them, so that they are never
    those of an upload that somebody serves.
    """
    forget(user)
    packed = zlib.compress(content)
    head = f"{_type(user)}\n".encode()
    pieces = [
        head + packed[start : start + PIECE] for start in range(0, len(packed), PIECE)
    ]
    rows = {
        name: Blob(digest=name, media_type=_type(user), size=len(piece), content=piece)
        for piece in pieces
        for name in [digest(piece)]
    }
    Blob.objects.bulk_create(rows.values(), batch_size=1, ignore_conflicts=True)
    return " ".join(map(digest, pieces))


def kept(user: AbstractBaseUser, name: str, most: int) -> bytes | None:
    """Return the person's file of this name; None where it is not there any more."""
    # What a browser sends may be anything; databases take no NUL.
    names = name.replace("\0", " ").split()
    rows = Blob.objects.filter(media_type=_type(user), digest__in=names[:_MOST_PIECES])
    pieces = {row.digest: bytes(row.content) for row in rows}
    if not names or any(each not in pieces for each in names):
        return None
    head = len(f"{_type(user)}\n".encode())
    packed = b"".join(pieces[each][head:] for each in names)
    try:
        return zlib.decompressobj().decompress(packed, most + 1)
    except zlib.error:
        return None


_MOST_PIECES: Final = 100


def forget(user: AbstractBaseUser) -> None:
    """Delete what is kept for a person."""
    Blob.objects.filter(media_type=_type(user)).defer("content").delete()


def _type(user: AbstractBaseUser) -> str:
    return f"{TYPE}; user={user.pk}"
