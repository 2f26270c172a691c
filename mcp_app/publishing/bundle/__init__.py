"""Servers and definitions as one reviewable file, from one site to another.

`export` writes it, `read` takes nothing but what it says it is, `compare` shows what
importing it would do, and `apply` does that, all or nothing.
"""

from __future__ import annotations

from mcp_app.publishing.bundle.applying import Imported, apply, check
from mcp_app.publishing.bundle.comparing import (
    Compared,
    Comparison,
    Outcome,
    Publication,
    compare,
)
from mcp_app.publishing.bundle.format import MOST_BYTES, Bundle, BundleRefused, Entry
from mcp_app.publishing.bundle.reading import read, too_large
from mcp_app.publishing.bundle.rights import needed
from mcp_app.publishing.bundle.selecting import (
    everything,
    servers_named,
    with_definitions,
)
from mcp_app.publishing.bundle.writing import export

__all__ = [
    "MOST_BYTES",
    "Bundle",
    "BundleRefused",
    "Compared",
    "Comparison",
    "Entry",
    "Imported",
    "Outcome",
    "Publication",
    "apply",
    "check",
    "compare",
    "everything",
    "export",
    "needed",
    "read",
    "servers_named",
    "too_large",
    "with_definitions",
]
