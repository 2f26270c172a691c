"""What a revision deprecates is said once by each process that uses it (SEP-2577)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mcp_app.protocol.revisions import Revision

logger = logging.getLogger("mcp_app.server")

_INSTEAD: Final = {
    "logging": "log by `logging`, which is for the site, or with OpenTelemetry",
    "roots": "let arguments, URIs or settings name what is meant",
    "sampling": "ask a model at its provider",
}
_said: set[tuple[str, str]] = set()


def used(revision: Revision, capability: str) -> None:
    """Note that user code uses a capability; warn where it is deprecated."""
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
