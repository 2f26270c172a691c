"""Models of a test's own, with tables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


@contextmanager
def tables_of(*models: Any) -> Iterator[None]:
    """Have tables of models, outside of any transaction."""
    with connection.schema_editor() as editor:
        for each in models:
            editor.create_model(each)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for each in reversed(models):
                editor.delete_model(each)
