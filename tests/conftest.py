"""What every test may use."""

from __future__ import annotations

import pytest
from pytest_django import DjangoDbBlocker

pytest_plugins = (
    "tests.grouping",
    "tests.require_all",
    "tests.scripting",
    "tests.serving",
)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Begin without rows of what code declares.

    The migration of the tests' database makes some where a module that declares the
    demo's tools was imported before.
    """
    from mcp_app.catalog.stored import MODELS  # noqa: PLC0415

    with django_db_blocker.unblock():
        for model in MODELS.values():
            model.rows().filter(source="code").delete()
