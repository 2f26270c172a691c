"""Names that the words of a document become: of tools, of arguments, each once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

LONGEST_NAME: Final = 64
_READ: Final = 500
"""Characters of a text that is longer than any name; one of them is quadratic."""
_CODED: Final = 10
"""Characters of a name without a letter or digit of ASCII that stand in it."""
_LONGEST_END: Final = len("_99999")


def snake_case(text: str) -> str:
    """Return an operationId as the name of a tool: `listPets` is `list_pets`."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text[:_READ])
    parts = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", parts)
    return re.sub(r"[^A-Za-z0-9]+", "_", parts).strip("_").lower()[:LONGEST_NAME]


def argument_name(text: str) -> str:
    """Return a name that a placeholder can have; `用户` is `u7528_u6237`."""
    if not re.search("[A-Za-z0-9]", text):
        text = "_".join(f"u{ord(each):x}" for each in text[:_CODED])
    name = re.sub(r"[^A-Za-z0-9_-]", "_", text)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


@dataclass
class Names:
    """Gives each name once: what is taken gets a number at its end."""

    names: set[str] = field(default_factory=set)
    _last: dict[str, int] = field(default_factory=dict)
    """The last number of all names that begin alike: counting starts there."""

    def take(self, base: str) -> str:
        """Return the name, or the next with a number, and keep it from others."""
        name, stem = base, base[: LONGEST_NAME - _LONGEST_END]
        while name in self.names:
            self._last[stem] = self._last.get(stem, 1) + 1
            end = f"_{self._last[stem]}"
            name = base[: LONGEST_NAME - len(end)] + end
        self.names.add(name)
        return name
