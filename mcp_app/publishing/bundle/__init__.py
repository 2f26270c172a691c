"""Servers and definitions as one reviewable file, from one site to another.

`export_bundle` writes a file, `read_bundle` reads it strictly, `compare_bundle` shows
what importing it would do, and `import_bundle` does that, all or nothing.
"""

from __future__ import annotations

from mcp_app.publishing.bundle.applying import (
    ImportedRow,
    check_importable,
    import_bundle,
    needed_rights,
)
from mcp_app.publishing.bundle.comparing import (
    ComparedEntry,
    Comparison,
    Outcome,
    Publication,
    compare_bundle,
)
from mcp_app.publishing.bundle.format import (
    MOST_BYTES,
    Bundle,
    BundleConflict,
    BundleRefused,
    Entry,
)
from mcp_app.publishing.bundle.reading import read_bundle, read_files, too_large
from mcp_app.publishing.bundle.writing import (
    everything,
    export_bundle,
    export_files,
    servers_by_name,
    with_definitions,
)

__all__ = [
    "MOST_BYTES",
    "Bundle",
    "BundleConflict",
    "BundleRefused",
    "ComparedEntry",
    "Comparison",
    "Entry",
    "ImportedRow",
    "Outcome",
    "Publication",
    "check_importable",
    "compare_bundle",
    "everything",
    "export_bundle",
    "export_files",
    "import_bundle",
    "needed_rights",
    "read_bundle",
    "read_files",
    "servers_by_name",
    "too_large",
    "with_definitions",
]
