"""Writes and deletes orders in a process of its own, a round for each line it reads.

python -m tests.kinds.query.coming_and_going DATABASE
"""

from __future__ import annotations

import os
import sys
from random import Random

ROWS = 10


def main(database: str) -> None:
    """Write ten orders in each round, delete five others, and say so with a line."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    import django  # noqa: PLC0415

    django.setup()
    from django.db import connection  # noqa: PLC0415

    from tests.drill.models import Order  # noqa: PLC0415
    from tests.kinds.query.shop import random_order  # noqa: PLC0415

    connection.settings_dict["NAME"] = database
    random = Random(11)  # noqa: S311 - no secret
    there: list[str] = []
    for number, _line in enumerate(sys.stdin):
        news = [f"new{number}-{each}" for each in range(ROWS)]
        Order.objects.bulk_create(random_order(each, random) for each in news)
        there += news
        random.shuffle(there)
        gone, there = there[: ROWS // 2], there[ROWS // 2 :]
        Order.objects.filter(number__in=gone).delete()
        print(len(there), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
