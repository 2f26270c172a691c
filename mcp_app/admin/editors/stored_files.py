"""A file kept in the database between two pages, for one user.

Django limits the size of a hidden field, and processes share no memory.
"""

from __future__ import annotations

import zlib
from typing import Final

from django.contrib.auth.base_user import AbstractBaseUser

from mcp_app.models import Blob
from mcp_app.models.fields import digest

PIECE: Final = 1024 * 1024
"""Bytes per row: databases limit the size of a statement."""
TYPE: Final = "application/x-mcp-bundle-piece"


def keep(user: AbstractBaseUser, content: bytes) -> str:
    """Store a file instead of the user's previous one; return its name.

    Its bytes are compressed and prefixed with the user's key, so that they never equal
    an upload that a definition uses.
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


def kept_content(user: AbstractBaseUser, name: str, most: int) -> bytes | None:
    """Return the user's file of this name; None if it is no longer there."""
    # A browser may send anything; databases refuse NUL.
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
    """Delete the user's file."""
    Blob.objects.filter(media_type=_type(user)).defer("content").delete()


def _type(user: AbstractBaseUser) -> str:
    return f"{TYPE}; user={user.pk}"
