"""Tables that are not there yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from django.db.models import Model

ELSEWHERE: Final = "not_there_yet"


@contextmanager
def missing(model: type[Model]) -> Iterator[None]:
    for field in model._meta.concrete_fields:
        # It is kept from its first use on, with the name of the table.
        assert field.cached_col.alias == model._meta.db_table
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model._meta, "db_table", ELSEWHERE)
        yield
