"""Fixtures of the pages that try things."""

from __future__ import annotations

from tests.admin.trying.people import login

__all__ = ["login"]
