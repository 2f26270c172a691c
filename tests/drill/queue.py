"""A queue of a site, for tasks; it declares nothing."""

from __future__ import annotations

import os
from pathlib import Path


def enqueue(task_id: str) -> None:
    """Stand for any queue: a file has a line for each message."""
    with Path(os.environ["QUEUE"]).open("a") as queue:
        queue.write(f"{task_id}\n")
