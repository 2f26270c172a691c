"""docs/admin.md, held against the pictures and the words of the admin."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from mcp_app.models import State
from mcp_app.publishing.rights import RIGHTS

DOCS: Final = Path(__file__).parent.parent / "docs"
DOCUMENT: Final = (DOCS / "admin.md").read_text("utf-8")
LOOKS: Final = ("light", "dark", "narrow")


def test_every_picture_is_there_in_each_look() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(images/([\w-]+)-light\.png\)", DOCUMENT)
    assert len(shown) == DOCUMENT.count("![")
    kept = {path.stem for path in (DOCS / "images").glob("*.png")}
    assert {f"{name}-{look}" for name in shown for look in LOOKS} <= kept
    assert {name.rpartition("-")[0] for name in kept} - set(shown) <= {"publish-first"}


def test_every_state_is_told() -> None:
    told = re.findall(r"^\| \*\*([^*]+)\*\* \|", DOCUMENT, re.MULTILINE)
    labels = [str(state.label) for state in State]
    assert [name for name in told if name in labels] == labels


def test_every_right_is_told() -> None:
    for right in RIGHTS.values():
        assert f"| **{right}** |" in DOCUMENT
