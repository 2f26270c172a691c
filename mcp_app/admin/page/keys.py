"""Primary keys of rows, and other numbers, in data from a browser."""

from __future__ import annotations

import re
from typing import Final

from django.core.exceptions import ValidationError
from django.db.models import Model

ROW_KEY: Final = re.compile("[0-9]{1,18}")
"""A number as a primary key: one of 18 digits fits into a column of 64 bits."""
MAX_NUMBER_DIGITS: Final = 9


def primary_key_of(model: type[Model], text: str) -> object:
    """Return the primary key that a text stands for; None if no row can have it."""
    try:
        key: object = model._meta.pk.clean(text, None)
    except ValidationError:
        # `clean` also refuses a number that is too large for the column.
        return None
    return key


def number_from(text: str, default: int) -> int:
    """Parse a number that a page sent; return `default` for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS
    return int(text) if is_number else default
