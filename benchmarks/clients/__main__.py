"""`python -m benchmarks.clients [--prepare] [NAME ...]`: drive clients, print a table.

Exits with 1 if a cell is `-`, that is if the server has a fault, and with 2 for a name
that no client has.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.clients.catalog import BY_NAME, Client
from benchmarks.clients.environments import InstallError, prepare


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    for name in options.names or BY_NAME:
        try:
            prepare(BY_NAME[name])
            _say(name)
        except InstallError as error:
            _say(f"{name}: {error}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--prepare", action="store_true")
    return parser.parse_args(arguments)


def _say(sentence: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
