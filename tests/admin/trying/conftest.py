"""Fixtures of the pages that try things."""

from tests.admin.trying.people import login

__all__ = ["login"]
