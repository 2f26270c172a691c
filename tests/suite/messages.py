"""Extract the product's messages for translators.

    python -m tests.suite.messages --write   write them: `make messages`
    python -m tests.suite.messages           fail if the file is out of date

They are extracted from a copy, so that the file names paths below `mcp_app`, and has no
date: it changes only if a message does, or moves to another file.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.suite.rooms import ROOT
from tests.suite.run import say

PACKAGE: Final = ROOT / "mcp_app"
CATALOG: Final = Path("locale", "en", "LC_MESSAGES", "django.po")
EXTRACTION: Final = (
    *("-m", "django", "makemessages", "--locale", "en"),
    *("--add-location", "file", "--no-wrap"),
)
HEADER: Final = """msgid ""
msgstr ""
"Project-Id-Version: django-mcp-app\\n"
"Language: en\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Content-Transfer-Encoding: 8bit\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"""
"""Without the date, which would differ each time."""


def extract(package: Path) -> str:
    """Return the catalog of a package's messages, all without a translation."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, package.name)
        shutil.copytree(package, copy, ignore=shutil.ignore_patterns("locale"))
        (copy / "locale").mkdir()
        subprocess.run(
            [sys.executable, *EXTRACTION],
            cwd=copy,
            # No settings: those of the suite are not to be found from there.
            env={**os.environ, "DJANGO_SETTINGS_MODULE": ""},
            check=True,
            stdout=subprocess.PIPE,
        )
        _, _, messages = (copy / CATALOG).read_text().partition("\n#: ")
        return f"{HEADER}\n#: {messages}"


def main() -> int:
    """Return 0 if the catalog is up to date, or was written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    if shutil.which("xgettext") is None:
        say("Messages are extracted by xgettext, and it is missing: install gettext.")
        return 1
    catalog, text = PACKAGE / CATALOG, extract(PACKAGE)
    if write:
        catalog.parent.mkdir(parents=True, exist_ok=True)
        catalog.write_text(text)
    elif not catalog.exists() or catalog.read_text() != text:
        say(f"{catalog.relative_to(ROOT)} is out of date. Run `make messages`.")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
