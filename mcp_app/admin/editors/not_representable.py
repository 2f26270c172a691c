"""What rows of forms cannot show."""

from __future__ import annotations


class Beyond(Exception):
    """Something says more than a table can show; the text names what and where."""
