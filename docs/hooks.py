"""A hook of MkDocs: pages beside `docs/` belong to the site, and links lead to them.

In the repository a link names a file, from the folder of its page.  On the site
`docs/` is the top, and files that are no pages have no place: their links become plain
text.  Links to files that are missing stay, so that `--strict` fails.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # MkDocs is in .venv-docs alone, where no types are checked.
    from mkdocs.config.defaults import MkDocsConfig  # type: ignore[import-not-found]
    from mkdocs.structure.files import Files  # type: ignore[import-not-found]
    from mkdocs.structure.pages import Page  # type: ignore[import-not-found]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGES: Final = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "vulnerabilities.md",
    "benchmarks/README.md": "benchmarks.md",
    "benchmarks/results/layers.md": "benchmarks-layers.md",
    "benchmarks/results/reliability.md": "benchmarks-reliability.md",
}
"""Pages that are not in `docs/`, and their names on the site."""
LINK: Final = re.compile(r"\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in `docs/`."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - in .venv-docs alone

    for path, name in PAGES.items():
        text = relink(path, (ROOT / path).read_text())
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return a page of `docs/` with the links of the site."""
    path = page.file.src_uri
    return markdown if path in PAGES.values() else relink(f"docs/{path}", markdown)


def relink(path: str, markdown: str) -> str:
    """Return the text of a page of the repository with the links of the site."""
    return LINK.sub(partial(_relinked, path), markdown)


def _relinked(page: str, link: re.Match[str]) -> str:
    path, hash_sign, anchor = link["target"].partition("#")
    if not path or ":" in path:
        return link[0]
    target = normpath(join(dirname(page), path))
    if target not in PAGES and not target.startswith("docs/"):
        return link["label"] if (ROOT / target).exists() else link[0]
    name = relpath(_site_path(target), dirname(_site_path(page)) or ".")
    return f"[{link['label']}]({name}{hash_sign}{anchor})"


def _site_path(path: str) -> str:
    return PAGES.get(path) or path.removeprefix("docs/")
