"""Which databases a site has, by what they say themselves."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any, Final

import redis

from tests.process.clusters import Cluster, run_python

ASKED: Final = """
import django
django.setup()
from django.db import connection
version = ".".join(map(str, connection.get_database_version()))
print(connection.display_name, version)
"""


def versions(clusters: Iterable[Cluster]) -> list[str]:
    """Return each server that is used, once: `["PostgreSQL 15.5", "Redis 7.0.15"]`."""
    found = []
    for each in clusters:
        found.append(run_python(each.environment, "-c", ASKED).strip())
        if each.redis is not None:
            client: Any = redis.Redis.from_url(each.redis.url)
            with closing(client):
                found.append(f"Redis {client.info('server')['redis_version']}")
    return sorted(set(found))
