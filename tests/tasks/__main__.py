"""`python -m tests.tasks`: kill what runs tasks, and restart it under load.

Each kill (SIGKILL) hits a task that runs, one whose function is just at its end, two
that wait for a place and two that wait for an answer; of these half may run again.  The
row says right after it in what state a task was.  What was killed is started at once.
In a deploy each process gets SIGTERM, one after the other, while clients begin and poll
tasks, of which some take longer than a process has.

A task is lost if it does not end, or ends otherwise than is promised.  It started too
often if it did so again, but for an answer, or after a death where it may run again.
Exits with 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from tests.tasks.killing import DYING, KINDS, Tried, deploy, kill, site

SIDE_BY_SIDE: Final = 2
"""Sites whose processes are killed at the same time: mostly they wait."""
LINE: Final = "{:<10} {:<9} {:>5} {:>6} {:>5} {:>18} {:>10}\n"
HEADINGS: Final = ("who", "state", "kills", "tasks", "lost", "started too often", "s")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--who", choices=KINDS, nargs="+", default=list(KINDS))
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--deploys", type=int, default=3)
    parser.add_argument("--database", default="postgresql")
    options = parser.parse_args()
    sys.stdout.write(LINE.format(*HEADINGS))
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        tried = pool.map(partial(try_one, options), options.who)
        broken = [report(*each) for each in zip(options.who, tried, strict=True)]
    return int(any(broken))


def try_one(options: argparse.Namespace, who: str) -> list[Tried]:
    with site(who, options.database) as own:
        tried = [each for number in range(options.kills) for each in kill(own, number)]
    if options.deploys:
        with site(who, options.database, least=2) as own:
            tried += deploy(own, options.deploys)
    return tried


def report(who: str, tried: Sequence[Tried]) -> bool:
    """Print a line for each state; return whether a promise was broken."""
    broken = False
    for state in ("waiting", *DYING, "parked", "ended", "deployed"):
        own = [each for each in tried if each.state == state]
        numbers = {each.number for each in own}
        lost = sum(each.is_lost for each in own)
        often = sum(each.starts_too_often for each in own)
        longest = max((each.seconds for each in own), default=0)
        line = (who, state, len(numbers), len(own), lost, often, f"{longest:.1f}")
        sys.stdout.write(LINE.format(*line))
        is_late = state != "deployed" and longest > KINDS[who].within_s
        broken |= bool(lost or often or is_late)
    sys.stdout.flush()
    return broken


if __name__ == "__main__":
    sys.exit(main())
