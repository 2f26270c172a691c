"""README.md and two pages of docs/ as a person reads them: headings, and code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.newcomer.programs import CHECKOUT

PAGES: Final = (
    CHECKOUT / "README.md",
    CHECKOUT / "docs/authentication.md",
    CHECKOUT / "docs/middleware.md",
    CHECKOUT / "docs/toolsets.md",
)
FENCE: Final = "```"


@dataclass(frozen=True, kw_only=True)
class Block:
    heading: str
    said: str
    language: str
    text: str

    @property
    def file(self) -> str:
        """The Python file that the paragraph names first, "" for none."""
        quoted = self.said.split("`")[1::2]
        return next((name for name in quoted if name.endswith(".py")), "")


def blocks(heading: str) -> list[Block]:
    """Return the fenced blocks right below a heading; there must be some."""
    own = [each for page in PAGES for each in _blocks(page) if each.heading == heading]
    if not own:
        raise LookupError(f"There is no code below the heading {heading!r}.")
    return own


def _blocks(page: Path) -> Iterator[Block]:
    heading = ""
    paragraph: list[str] = []
    lines = iter(page.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line.startswith(FENCE):
            yield Block(
                heading=heading,
                said=" ".join(paragraph).strip(),
                language=line.removeprefix(FENCE),
                text="".join(f"{each}\n" for each in _until_fence(lines)),
            )
            paragraph = []
        elif line.startswith("#"):
            heading = line.strip("# ")
        else:
            # What stands after an empty line is another paragraph.
            paragraph = [line] if paragraph[-1:] == [""] else [*paragraph, line]


def _until_fence(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line == FENCE:
            return
        yield line
