"""Draw faults of one line, and say which of them no in-process test finds.

    make faults SEED=7 COUNT=30 ROOMS="auth server"
    python -m tests.suite.faults --list FILE         those of a list
    python -m tests.suite.faults --plant FILE --into TREE

The faults are planted in copies: this checkout stays as it is.  A list has a JSON
object a line: file, before and after, and the number of the line.
What came of each is written to results/faults, as such a list.  `--plant` writes the
first fault of each room into another tree, for a run of all tests there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from threading import Event

from tests.suite.commands import end_as_by_control_c
from tests.suite.faults.drawing import drawn
from tests.suite.faults.judging import Copy, Verdict, near, temporary_folder
from tests.suite.faults.listing import Fault, plant, read, write
from tests.suite.reach import of_checkout
from tests.suite.rooms import ROOT


def judged(
    root: Path, faults: Sequence[Fault], jobs: int, *, only_near: bool
) -> Generator[Verdict]:
    """Yield what becomes of each fault of a tree, as it is known."""
    reach = of_checkout()
    stop = Event()
    copies: SimpleQueue[Copy] = SimpleQueue()

    def judge(fault: Fault) -> Verdict:
        copy = copies.get()
        steps = reach.steps([fault.file])
        try:
            return copy.judge(fault, near(fault, steps) if only_near else steps)
        finally:
            copies.put(copy)

    with temporary_folder() as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            own = folder / str(number)
            own.mkdir()
            copies.put(Copy(root, own, stop))
        futures = [pool.submit(judge, each) for each in faults]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def _judge(name: str, faults: list[Fault], options: argparse.Namespace) -> int:
    """Return 0 where each fault was caught."""
    verdicts: list[Verdict] = []
    how_far = "-near" if options.near else ""
    results = ROOT / "results" / "faults" / f"{name}{how_far}.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    judging = judged(ROOT, faults, options.jobs, only_near=options.near)
    with results.open("w") as file, closing(judging):
        for verdict in judging:
            verdicts.append(verdict)
            file.write(f"{json.dumps(verdict.as_json())}\n")
            file.flush()
            _say(str(verdict))
    missing = [each for each in verdicts if each.outcome not in ("caught", "hang")]
    caught, seconds = len(verdicts) - len(missing), sum(v.seconds for v in verdicts)
    _say(f"\n{caught} of {len(faults)} caught, {seconds:.0f} s of the processor")
    _say(f"Each fault and what caught it: {results.relative_to(ROOT)}")
    for each in missing:
        _say(str(each))
    return int(bool(missing))


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _plant(faults: list[Fault], into: Path) -> int:
    for fault, became in plant(into, faults):
        _say(f"{fault}\n  {became}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.suite.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--rooms", nargs="*", default=[])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--near", action="store_true", help="only by its own room")
    parser.add_argument("--list", type=Path, metavar="FILE")
    parser.add_argument("--plant", type=Path, metavar="FILE")
    parser.add_argument("--into", type=Path, metavar="TREE")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="only draw")
    options = parser.parse_args()
    if options.jobs < 1 or options.count < 0:
        parser.error("there is at least one job, and no negative number of faults")
    if (options.plant is None) != (options.into is None):
        parser.error("--plant needs --into, and the other way round")
    return options


def main() -> int:
    options = _arguments()
    end_as_by_control_c()
    try:
        if options.plant:
            return _plant(read(options.plant), options.into)
        if options.list:
            return _judge(options.list.stem, read(options.list), options)
        faults = drawn(ROOT, options.seed, options.count, options.rooms)
    except (KeyError, OSError, TypeError, ValueError) as error:
        _say(f"{type(error).__name__}: {error}")
        return 2
    if options.draw:
        write(options.draw, faults)
        return 0
    return _judge(f"seed-{options.seed}", faults, options)


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except KeyboardInterrupt:
        _say("Stopped.")
        raise SystemExit(130) from None
