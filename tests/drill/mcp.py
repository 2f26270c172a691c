"""Autodiscovered: registers the functions that the fixture rows name by their keys."""

from __future__ import annotations

from tests.drill.functions import asking, drills, input_required, telling

__all__ = ["asking", "drills", "input_required", "telling"]
