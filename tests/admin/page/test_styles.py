"""The style sheet of the admin's pages: what it may rely on."""

from __future__ import annotations

import re
from pathlib import Path

import mcp_app

CSS = Path(mcp_app.__file__).parent / "static" / "mcp_app" / "admin.css"


def test_our_classes_do_not_rely_on_an_element_that_only_django_has() -> None:
    """django-jazzmin and django-grappelli have no #content."""
    css, _mark, _unfold = CSS.read_text(encoding="utf-8").partition("html[x-data^=")
    assert re.findall(r"#content [a-z]*\.mcp-[^{]*", css) == []
