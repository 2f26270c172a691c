"""How many connections to our database one process may open at the same time.

Those of the site's own pages come on top: Django opens one per running request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_app.pools.database import MOST_LEFT, POOLS
from mcp_app.pools.user_threads import SUBSTITUTES

LOOP_THREAD = 1
"""All statements of async user code run in one thread."""


@dataclass(frozen=True, slots=True)
class Connections:
    """`usual` is not exceeded while no threads are added; `most` never.

    Threads are added for calls that wait for a person's answer or hang, for people who
    call while all threads are busy, and where the database did not answer ours.
    """

    usual: int
    most: int


def of_process(threads: int) -> Connections:
    """Return the counts; `threads` is the setting of that name."""
    own = sum(each.size for each in POOLS) + LOOP_THREAD
    return Connections(
        own + threads, own + MOST_LEFT * len(POOLS) + threads * SUBSTITUTES
    )


def pool_size(pool: object) -> int:
    """Return the size of a process's pool from Django's option `pool` for PostgreSQL.

    The names and the defaults are psycopg_pool's.
    """
    options = pool if isinstance(pool, Mapping) else {}
    return int(options.get("max_size") or options.get("min_size", 4))
