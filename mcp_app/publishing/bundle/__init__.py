"""Servers and definitions as one reviewable file, from one site to another.

`export` writes it, `read` takes nothing but what it says it is, `compare` shows what
importing it would do, and `apply` does that, all or nothing.
"""

from __future__ import annotations

from mcp_app.publishing.bundle.applying import ImportedRow, apply, check, needed_rights
from mcp_app.publishing.bundle.comparing import (
    ComparedEntry,
    Comparison,
    Outcome,
    Publication,
    compare,
)
from mcp_app.publishing.bundle.format import MOST_BYTES, Bundle, BundleRefused, Entry
from mcp_app.publishing.bundle.reading import read, too_large
from mcp_app.publishing.bundle.writing import (
    everything,
    export,
    servers_by_name,
    with_definitions,
)

__all__ = [
    "MOST_BYTES",
    "Bundle",
    "BundleRefused",
    "ComparedEntry",
    "Comparison",
    "Entry",
    "ImportedRow",
    "Outcome",
    "Publication",
    "apply",
    "check",
    "compare",
    "everything",
    "export",
    "needed_rights",
    "read",
    "servers_by_name",
    "too_large",
    "with_definitions",
]
