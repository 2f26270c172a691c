"""Primary keys of rows in data from a browser."""

from __future__ import annotations

import re
from typing import Final

from django.core.exceptions import ValidationError
from django.db.models import Model

ROW_KEY: Final = re.compile("[0-9]{1,18}")


def primary_key_of(model: type[Model], text: str) -> object:
    """Return the primary key that a text stands for; None if it is not valid."""
    try:
        key: object = model._meta.pk.clean(text, None)
    except ValidationError:
        # The key's validators also check its range in the database.
        return None
    return key
