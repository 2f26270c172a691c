"""Runs the programs of clients that are programs: one for each request."""

from __future__ import annotations

import asyncio
import re

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


async def ran(job, program, *arguments):
    """Return what a program of node's folder writes, and beside it, at its end."""
    child = await asyncio.create_subprocess_exec(
        f"{job['modules']}/.bin/{program}",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    written, beside = await child.communicate()
    return _read(written), _read(beside)


def _read(written):
    return ESCAPES.sub("", written.decode(errors="replace")).strip()


def line_of(name, written):
    """Return the line about a server, out of a list of them, or all of it."""
    lines = [line for line in written.splitlines() if f"{name}:" in line]
    return " ".join((lines or [written])[0].split())
