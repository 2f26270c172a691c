"""Names of what a killed process would leave behind: they say whose it is.

    mcp_1f0c2a9b_4711_8128853_5f0e1d2c

The host, the process, and when that began, for its number may be another's later on.
With Django's `test_` and the `_gw0` of pytest-xdist they have at most 63 characters,
which is what PostgreSQL keeps of a name.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final
from uuid import uuid4

OWNED: Final = re.compile(
    r"(test_)?mcp_(?P<host>[0-9a-f]{8})_(?P<pid>\d+)_(?P<start>\d+)_"
)
SHARED: Final = "SUITE_SHARED"
"""The environment variable with the folder that all runs have in common."""
BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
DEAD: Final = ("Z", "X")
STATE: Final = 0
START: Final = 19
"""Places in /proc/<pid>/stat, counted from behind the program's name."""


def shared_folder() -> Path:
    """Return where runs on this machine share files; each has another TMPDIR."""
    return Path(os.environ.get(SHARED) or tempfile.gettempdir())


def owner() -> str:
    """Return how names begin that are this process's; for folders, say."""
    start = _start(os.getpid())
    return f"mcp_{_host()}_{os.getpid()}_{start}_"


def owned_name() -> str:
    """Return a name that nobody has: lower case letters, digits and `_`."""
    return f"{owner()}{uuid4().hex[:8]}"


def is_left(name: str) -> bool:
    """Whether this is named after a process of this host that has ended."""
    owned = OWNED.match(name)
    if owned is None or owned["host"] != _host():
        return False
    return _start(int(owned["pid"])) != int(owned["start"])


@cache
def _host() -> str:
    """Return a digest of whose processes these are, and who counts them.

    Containers may have their host's name, and others' processes may be hidden.
    Machines that are made of one image have the same name and id, and use the same
    database server: what begins anew with each start of a machine is never the same.
    """
    counts = os.readlink("/proc/self/ns/pid")
    boot = BOOT.read_text(encoding="ascii").strip()
    named = f"{socket.gethostname()} {boot} {counts} {os.getuid()}".encode()
    return blake2b(named, digest_size=4).hexdigest()


def _start(pid: int) -> int | None:
    """Return when a process began, in ticks since the machine did."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[STATE] in DEAD else int(fields[START])
