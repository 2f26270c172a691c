"""The site's suite on PostgreSQL."""

from __future__ import annotations

import os

import pytest

from tests.testing.running import PYTEST, run_suite

pytestmark = pytest.mark.databases


def test_by_pytest() -> None:
    server = os.environ["DATABASE_URL"].rpartition("/")[0]
    run_suite(*PYTEST, database=f"{server}/mcp_own_site")
