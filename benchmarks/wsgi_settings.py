"""The settings of the fixture set, for a site that has one view."""

from __future__ import annotations

from tests.drill.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.wsgi_peers"
for each in DATABASES.values():  # noqa: F405
    # Nobody who measures opens a connection for each request.
    each["CONN_MAX_AGE"] = None
