"""What is asked of a client, and how its driver is run: each time as a new process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any, Final, TypeAlias

from benchmarks.clients.catalog import BY_NAME, NODE, PYTHON, Client
from benchmarks.clients.environments import (
    DRIVERS,
    NODE_PROGRAM,
    folder,
    python,
    with_node,
)
from benchmarks.clients.site import Site
from benchmarks.processes import ROOT

BROWSER: Final = {
    "BROWSER": f"{sys.executable} {Path(__file__).with_name('browser.py')} %s",
    "PYTHONPATH": str(ROOT),
}
"""Opens what a client asks a person to allow."""
PATIENCE_S: Final = 60
REFUSED_S: Final = 20
"""For each step within a driver, and for one that is likely to wait in vain."""
LIMIT_S: Final = 300
"""For a driver as a whole."""
END_S: Final = 5
"""For the end of a driver that has reported, after which it is killed."""
TAIL: Final = 600
"""Characters of standard error that are kept of a driver that said nothing."""
QUIET: Final = {
    "NO_COLOR": "1",
    "DO_NOT_TRACK": "1",
    "DISABLE_TELEMETRY": "1",
    "OTEL_SDK_DISABLED": "true",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}

Report: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of a driver: where it connects, with what, and what happens between.

    `whole` asks for all calls, and not for one alone; with `signs_in` the client has
    to sign in first, in a browser that allows everything.  If there is `meanwhile`, the
    driver waits after its first call until that has returned, and calls again.
    """

    transport: str
    url: str = ""
    token: str = ""
    command: Sequence[str] = ()
    whole: bool = False
    signs_in: bool = False
    meanwhile: Callable[[], None] | None = None


def jobs(client: Client, site: Site) -> dict[str, Job]:
    """Return what is asked of a client, by the name of the probe."""
    on_network = [each for each in client.transports if each != "stdio"]
    found = {
        each: Job(transport=each, url=site.address("", each), whole=True)
        for each in on_network
    }
    if "stdio" in client.transports:
        found["stdio"] = Job(transport="stdio", command=site.command, whole=True)
    if not on_network:
        return found
    transport = on_network[0]
    guarded = site.address("guarded", transport)
    shown = {"right": site.token(), "wrong": site.wrong, "missing": ""}
    for name, token in shown.items():
        if name not in client.lacks:
            found[name] = Job(transport=transport, url=guarded, token=token)
    if "revoked" not in client.lacks:
        token = site.token()
        found["revoked"] = Job(
            transport=transport,
            url=guarded,
            token=token,
            meanwhile=lambda: site.revoke(token),
        )
    # A stream of HTTP+SSE ends with its process, and its session with it.
    if transport == "http" and "restart" not in client.lacks:
        url = site.address("", transport)
        found["restart"] = Job(transport=transport, url=url, meanwhile=site.restart)
    if client.signs_in:
        found["signs in"] = Job(transport=transport, url=site.signed, signs_in=True)
    return found


def run(client: Client, job: Job, site: Site) -> Report:
    """Run the driver, and return what it reports; "error" says if it did not."""
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as home:
        child = subprocess.Popen(
            [*_program(client), json.dumps(_told(client, job, site, home))],
            cwd=home,
            env={**_environment(home), **(BROWSER if job.signs_in else {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            report = _followed(child, job.meanwhile)
            with suppress(subprocess.TimeoutExpired):
                child.wait(END_S if report else 0)
        finally:
            _end(child)
        errors.seek(0)
        written = errors.read()[-TAIL:].decode(errors="replace").strip()
    if report is None:
        return {"error": f"the driver ended without a report: {written}"}
    return report


def _program(client: Client) -> Sequence[str]:
    host = BY_NAME[client.host] if client.host else client
    if client.driver.endswith(".mjs"):
        return [str(NODE_PROGRAM), str(folder(client) / client.driver)]
    inside = host.kind == PYTHON
    runs = python(folder(host)) if inside else NODE_PROGRAM.with_name("python")
    return [str(runs), str(DRIVERS / client.driver)]


def _environment(home: str) -> dict[str, str]:
    """Return what a driver is given: nothing of whoever runs this but programs.

    Clients have a home folder of their own, and tell nobody that they were used.
    """
    inherited = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR")}
    return with_node({**inherited, **QUIET, "HOME": home})


def _told(client: Client, job: Job, site: Site, home: str) -> dict[str, Any]:
    return {
        "transport": job.transport,
        "url": job.url,
        "token": job.token,
        "command": [*job.command],
        "env": site.environment,
        "whole": job.whole,
        "signs_in": job.signs_in,
        "pause": job.meanwhile is not None,
        "patience_s": PATIENCE_S if job.whole else REFUSED_S,
        "home": home,
        "path": with_node(os.environ)["PATH"],
        "node": str(NODE_PROGRAM),
        "modules": str(folder(client) / "node_modules") if client.kind == NODE else "",
    }


def _followed(
    child: subprocess.Popen[bytes], meanwhile: Callable[[], None] | None
) -> Report | None:
    """Return the report; None if the driver ends, or takes too long, without one."""
    assert child.stdin is not None
    assert child.stdout is not None
    limit = Timer(LIMIT_S, os.killpg, (child.pid, signal.SIGKILL))
    limit.start()
    try:
        for line in child.stdout:
            word, _, said = line.partition(b" ")
            if word == b"REPORT":
                report: Report = json.loads(said)
                return report
            if word == b"READY" and meanwhile:
                meanwhile()
                child.stdin.write(b"\n")
                child.stdin.flush()
        return None
    finally:
        limit.cancel()


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the driver and the programs that it has started, which are of its group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()
