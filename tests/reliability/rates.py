"""What a watched model costs who writes: eight writers of eight lines.

    python -m tests.reliability.rates

is one of them.  Each line of its input names what its transactions do besides saving
the line, and for how many seconds; it answers with how many there were, and how many
deadlocks.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Final

from tests.drill.programs import Program
from tests.process.clusters import LINES, python_environment
from tests.reliability.clients import Stream
from tests.reliability.rounds import Round
from tests.reliability.site import Site

TEST: Final = "rates of writers"
WRITERS: Final = 8
SECONDS: Final = 2.0
WATCHED, PLAIN, COUNTER = "change", "plain insert", "bumped counter"
UNHEARD: Final = "change, unheard"
"""The same as the first, while no stream listens."""
GOES_ON: Final = ", 5 ms more"
"""Of transactions that go on after the save: what they hold, they hold for longer."""
WATCHED_LONGER, COUNTER_LONGER = f"{WATCHED}{GOES_ON}", f"{COUNTER}{GOES_ON}"
MODES: Final = (WATCHED, PLAIN, COUNTER, WATCHED_LONGER, COUNTER_LONGER)


def rates(site: Site, rounds: int) -> Iterator[Round]:
    keys = [f"line{number}" for number in range(LINES - WRITERS, LINES)]
    uris = [f"ledger://{key}" for key in keys]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(_writer(site.cluster.environment, key)) for key in keys
        ]
        _together(writers, PLAIN, 1.0)
        for number in range(rounds):
            found = {UNHEARD: _together(writers, WATCHED, SECONDS)}
            with Stream.listen(site.cluster.urls[0], resourceSubscriptions=uris):
                # What disturbs the machine for a while falls on all of them.
                for mode in MODES if number % 2 else MODES[::-1]:
                    found[mode] = _together(writers, mode, SECONDS)
            yield Round(
                test=TEST,
                asked=len(writers),
                deadlocks=sum(deadlocks for _, deadlocks in found.values()),
                rates={mode: rate for mode, (rate, _) in found.items()},
            )


def _writer(environment: Mapping[str, str], key: str) -> Program:
    given = {name: value for name, value in environment.items() if name != "FAULTS"}
    command = [sys.executable, "-m", "tests.reliability.rates", key]
    return Program(command, env=python_environment(given), pipes=True)


def _together(writers: list[Program], mode: str, seconds: float) -> tuple[float, int]:
    begun = time.time() + 0.1
    for each in writers:
        each.say(json.dumps([mode, begun, seconds]))
    counts = [json.loads(each.hear()) for each in writers]
    return sum(own for own, _ in counts) / seconds, sum(each for _, each in counts)


def main(key: str) -> None:
    import django  # noqa: PLC0415

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
    django.setup()
    # It imports models, which are there now.
    from tests.reliability.transactions import saving  # noqa: PLC0415

    for line in sys.stdin:
        mode, begun, seconds = json.loads(line)
        with saving(key, mode) as save:
            time.sleep(max(0.0, begun - time.time()))
            counts = _counted(save, begun + seconds)
        sys.stdout.write(f"{json.dumps(counts)}\n")
        sys.stdout.flush()


def _counted(save: Callable[[], Any], end: float) -> tuple[int, int]:
    from django.db import OperationalError  # noqa: PLC0415

    done, deadlocks = 0, 0
    while time.time() < end:
        try:
            save()
            done += 1
        except OperationalError as error:
            if "deadlock" not in str(error).lower():
                raise
            deadlocks += 1
    return done, deadlocks


if __name__ == "__main__":
    main(sys.argv[1])
