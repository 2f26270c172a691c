"""What the stateful revisions demand of messages, by the ids of their requirements."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcp_app.protocol.content import (
    Audio,
    Block,
    EmbeddedResource,
    Image,
    ResourceContents,
    ResourceLink,
    block_to_wire,
)
from mcp_app.protocol.revisions import REVISIONS


@pytest.mark.parametrize("kind", [Image, Audio])
@pytest.mark.parametrize(
    "mime_type", ["", "png", "image/", "/png", "image/p ng", "ä/b"]
)
def test_a_media_type_is_valid(
    kind: Callable[[bytes, str], Block], mime_type: str
) -> None:
    """S-PROMPT-014, S-PROMPT-015."""
    with pytest.raises(ValueError, match="is not a media type"):
        kind(b"", mime_type)


@pytest.mark.parametrize("mime_type", ["image/png", "image/svg+xml", "audio/x;a=1"])
def test_media_types(mime_type: str) -> None:
    assert Image(b"", mime_type).mime_type == mime_type


@pytest.mark.parametrize("uri", ["", "notes", "/notes", "memo:", "memo://ä", "a b:c"])
def test_a_uri_is_valid(uri: str) -> None:
    """S-PROMPT-016."""
    with pytest.raises(ValueError, match="is not an absolute URI"):
        EmbeddedResource(ResourceContents(uri=uri, text=""))
    with pytest.raises(ValueError, match="is not an absolute URI"):
        ResourceLink(uri, "name")


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize(
    ("contents", "shown"),
    [
        (ResourceContents(uri="memo://a", text="t"), "text/plain"),
        (ResourceContents(uri="memo://a", blob=b"b"), "application/octet-stream"),
        (ResourceContents(uri="memo://a", text="t", mime_type="a/b"), "a/b"),
    ],
)
def test_an_embedded_resource_has_a_media_type(
    version: str, contents: ResourceContents, shown: str
) -> None:
    """S-PROMPT-017."""
    wire = block_to_wire(EmbeddedResource(contents), REVISIONS[version])
    assert wire["resource"]["mimeType"] == shown
