"""Removes what runs of the suite left behind that were killed.

    python -m tests.suite.sweeping

These are databases, on each server that can be reached, files and folders whose names
say that a process of this host made them which has ended, and templates that are
good no longer.  What other hosts have on the same server is left alone.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.suite.owners import is_left, shared_folder
from tests.suite.stores import STORES, Refused, Store, Unreachable
from tests.suite.template_databases import is_outdated


def sweep() -> list[str]:
    """Remove what is left, and return its names; others may sweep at the same time."""
    return [*_swept_databases(), *_swept_paths(shared_folder())]


def _swept_databases() -> Iterator[str]:
    for vendor, make in STORES.items():
        try:
            yield from (f"{vendor} {name}" for name in _swept(make()))
        except Unreachable:
            continue


def _swept(store: Store) -> Iterator[str]:
    for name in store.names():
        if is_left(name) or is_outdated(name):
            try:
                store.drop(name)
            except Refused:
                # Another run sweeps it now, or somebody whose parent is gone has
                # it locked: the next run looks again.
                continue
            yield name


def _swept_paths(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        if is_left(path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
            yield str(path)


if __name__ == "__main__":
    sys.stdout.writelines(f"{each}\n" for each in sweep())
