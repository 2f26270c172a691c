"""`python -m benchmarks.clients [NAME ...]`: drive clients, print what they can do.

The tables go to standard output, and what is done meanwhile beside it.  Exits with 1 if
a cell is `-`, that is if the server has a fault, and with 2 for a name that no client
has.  `--prepare` only installs.  `--record FILE` writes how each client writes a call:
`tests/transports/http/recorded.jsonl` has such lines.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.clients.catalog import ALL, BY_NAME, Client
from benchmarks.clients.environments import InstallError, prepare
from benchmarks.clients.probes import Report, jobs, run
from benchmarks.clients.site import Site, serving
from benchmarks.clients.table import markdown
from benchmarks.clients.verdicts import Verdict, verdict

NAMES: Final = ", ".join(BY_NAME)


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive the chosen clients, and return the exit status."""
    options = _options(arguments)
    unknown = [name for name in options.names if name not in BY_NAME]
    if unknown:
        _say(f"No client is called {', '.join(unknown)}; there are: {NAMES}.")
        return 2
    # So that the server is stopped by its context manager.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    chosen = [BY_NAME[name] for name in options.names] or list(ALL)
    missing = _installed(chosen)
    if options.prepare:
        return int(bool(missing))
    with serving(options.record) as site:
        verdicts = [_driven(client, site, missing) for client in chosen]
    print(markdown(verdicts))
    faults = [fault for each in verdicts for fault in each.faults] + site.faults
    for fault in faults:
        _say(f"FAULT {fault}")
    return int(bool(faults))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.clients", description=__doc__
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"all, or some of {NAMES}"
    )
    parser.add_argument("--prepare", action="store_true", help="only install")
    parser.add_argument("--record", metavar="FILE", default="", help="write calls")
    return parser.parse_args(arguments)


def _installed(chosen: Sequence[Client]) -> dict[str, str]:
    """Install one client after the other; return why some could not be installed."""
    missing: dict[str, str] = {}
    hosts = [BY_NAME[client.host] for client in chosen if client.host]
    for client in (*hosts, *chosen):
        try:
            prepare(client)
        except InstallError as error:
            missing[client.name] = str(error)
            _say(f"{client.title} could not be installed: {error}")
    return missing


def _driven(client: Client, site: Site, missing: dict[str, str]) -> Verdict:
    for name in (client.name, client.host):
        if name in missing:
            return Verdict(client, not_installed=missing[name])
    reports: dict[str, Report] = {}
    for probe, job in jobs(client, site).items():
        _say(f"{client.title}: {probe}")
        reports[probe] = run(client, job, site)
    return verdict(client, reports)


def _say(sentence: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {sentence}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
