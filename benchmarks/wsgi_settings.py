"""The settings of the fixture set, for a site that has one view."""

from __future__ import annotations

from tests.drill.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.wsgi_peers"
