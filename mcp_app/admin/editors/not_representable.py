"""The error for values that rows of forms cannot show."""

from __future__ import annotations


class NotRepresentable(Exception):
    """A value says more than a table can show; the message names what and where."""
