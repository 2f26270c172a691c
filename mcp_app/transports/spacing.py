"""The time between an answer and the message before it."""

from __future__ import annotations

from typing import Final

APART_S: Final = 0.005
"""Seconds between a notification and the answer: the TypeScript SDK reorders messages
that it reads together, and then no longer knows the progress token."""
