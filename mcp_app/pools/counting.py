"""How many connections to our database one process has at the same time.

Those of the site's own pages come on top: Django has one for each request that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_app.pools.database import MOST_LEFT, POOLS
from mcp_app.pools.user_threads import SUBSTITUTES

LOOP_THREAD = 1
"""All statements of async user code are made in one thread."""


@dataclass(frozen=True, slots=True)
class Connections:
    """`usual` is never exceeded while every call goes on; `most` never at all.

    Beyond `usual` are threads of calls that wait for a person's answer, or hang, and
    threads of ours that were given up because the database did not answer them.
    """

    usual: int
    most: int


def of_process(threads: int) -> Connections:
    """Count them; `threads` is the setting of that name."""
    own = sum(each.size for each in POOLS) + LOOP_THREAD
    return Connections(
        own + threads, own + MOST_LEFT * len(POOLS) + threads * SUBSTITUTES
    )


def pooled(pool: object) -> int:
    """Return how many a process has with the option `pool` of Django for PostgreSQL.

    The names and the defaults are psycopg_pool's.
    """
    options = pool if isinstance(pool, Mapping) else {}
    return int(options.get("max_size") or options.get("min_size", 4))
