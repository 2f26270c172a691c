"""Run the suite, and say what it cost.

    python -m tests.suite test       what a change can break: `make test`
    python -m tests.suite all        everything: `make test-all`
    python -m tests.suite coverage   branches of the in-process rooms: `make coverage`

REQUIRE_ALL=1     a skip is a failure
ALLOW_UNSTEADY=1  one or two failed tests may pass on being run again, and are named
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from types import FrameType
from typing import Final

from tests.suite import budget, parts, report, unsteady
from tests.suite.run import Run, say
from tests.suite.verdict import excesses, judge

FORMS: Final = {
    "test": parts.suite,
    "all": parts.whole_suite,
    "coverage": parts.coverage,
}
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """Return 0 if all that ran has passed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("form", choices=FORMS)
    form = parser.parse_args().form
    try:
        # What the verdict needs; a mistake there is not to be found out at the end.
        budget.read(budget.TABLE)
        unsteady.listed(unsteady.LISTED)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    for number in ENDING:
        # Under `nohup` the terminal may go.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)
    with Run() as run:
        return _judged(run, form)


def _judged(run: Run, form: str) -> int:
    began = time.monotonic()
    run.of(FORMS[form]())
    run.end_programs()
    run.measure_unit()
    wall = time.monotonic() - began
    allowed = os.environ.get("ALLOW_UNSTEADY") == "1"
    verdict = judge(run, form, may_be_unsteady=allowed)
    report.print_costs(run, wall, report.BOUND_S if form == "test" else None)
    if form == "test":
        verdict.wrong.extend(excesses(run))
    report.print_verdict(run, verdict)
    return int(bool(verdict.wrong))


def _interrupt(number: int, _frame: FrameType | None) -> None:
    # Once is enough: what follows is to end everything.
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    say(f"\nStopped by {signal.Signals(number).name}: what was started is ended.")
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
