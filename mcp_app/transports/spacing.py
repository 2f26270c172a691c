"""The distance between an answer and what was sent before it."""

from __future__ import annotations

from typing import Final

APART_S: Final = 0.005
"""An answer follows a notification after so long: the TypeScript SDK handles those that
it reads together in another order, and then knows the progress token no more."""
