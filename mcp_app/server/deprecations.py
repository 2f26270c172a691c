"""Warns once per process if user code uses a deprecated capability (SEP-2577)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp_app.protocol.revisions import Revision

logger = logging.getLogger("mcp_app.server")

_INSTEAD: Final = {
    "logging": "use Python's `logging` for the site's log, or OpenTelemetry",
    "roots": "name files and folders in arguments, URIs or settings",
    "sampling": "call the model's provider directly",
}
_said: set[tuple[str, str]] = set()


def note_use(revision: Revision, capability: str) -> None:
    """Log one warning if user code uses a deprecated capability."""
    named = (revision.version, capability)
    if capability not in revision.deprecated or named in _said:
        return
    _said.add(named)
    logger.warning(
        "Code of this site uses %s, which revision %s of the protocol deprecates: %s.",
        capability,
        revision.version,
        _INSTEAD[capability],
    )
