"""Files of the client: what lies within the folders that it opened (client/roots)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_app.interface.errors import ToolError
from mcp_app.interface.questions import Root

HERE = ("", "localhost")


def within(roots: Sequence[Root], path: str | os.PathLike[str]) -> Path:
    """Return where a path really leads, which is in a root; looks at the disk.

    For a server that has the client's disk, such as one on stdio.  `..` and symbolic
    links are followed before; the file itself need not be there.  A relative path is
    that of the first root that has it, else of the first of all.

    Raises `ToolError` for what is outside, also of a root that is gone: the model is
    told, and the next call may be shown other roots.
    """
    folders = list(_folders(roots))
    if not folders:
        raise ToolError("None of the client's root folders exists here.")
    having = (each for each in folders if os.path.lexists(each / path))
    try:
        found = (next(having, folders[0]) / path).resolve()
    except (OSError, RuntimeError, ValueError):
        # A loop of links, or a NUL character.
        found = None
    if found is not None and any(found.is_relative_to(each) for each in folders):
        return found
    raise ToolError(f"{os.fspath(path)!r:.200} is outside the client's root folders.")


def _folders(roots: Sequence[Root]) -> Iterator[Path]:
    """Yield where the roots really are; those that are not there are left out."""
    for root in roots:
        parts = urlsplit(root.uri)
        if parts.scheme == "file" and parts.netloc in HERE:
            try:
                yield Path(url2pathname(parts.path)).resolve(strict=True)
            except (OSError, RuntimeError, ValueError):
                continue
