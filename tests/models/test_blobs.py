from __future__ import annotations

import pytest

from mcp_app.models import Blob

pytestmark = pytest.mark.django_db


def test_the_same_bytes_are_kept_once() -> None:
    first = Blob.objects.keep(b"\x00\xff", "image/png")
    again = Blob.objects.keep(b"\x00\xff", "text/plain")
    assert first == again
    found = Blob.objects.get()
    assert bytes(found.content) == b"\x00\xff"
    assert (found.size, found.media_type) == (2, "image/png")
