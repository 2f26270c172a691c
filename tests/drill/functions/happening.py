"""Events, and processes that die at each step of their delivery, if they are to.

`HAPPENINGS` is a folder.  A file of it such as `posted.SIGKILL` lets the process that
comes to this step first send itself that signal; then the file has its pid as the
suffix.  `names.json` has the addresses of names, `port` what stands for 443, and what
takes minutes takes seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias

from django.db import transaction

from mcp_app.catalog.registry import mcp
from mcp_app.egress import callbacks
from mcp_app.models import event_subscriptions
from mcp_app.process import event_delivery
from mcp_app.streams import event_deliveries
from mcp_app.streams.event_deliveries import Claim

Good: TypeAlias = Callable[..., Any]

FOLDER: Final = Path(os.environ.get("HAPPENINGS", ""))
NAMES: Final = "names.json"
EMITTED: Final = "emitted"
ENOUGH: Final = "enough"
DOMAIN: Final = ".receiver.test"
SIGNALS: Final = (signal.SIGKILL, signal.SIGSTOP)
PAUSES_MS: Final = [500, 1_000, 2_000, 4_000]
LEASE_MS: Final = 6_000
TIMEOUT_S: Final = 3.0
POSTING_S: Final = 0.01


@mcp.event("drill.happened", filters=["lane"])
@dataclass
class Happened:
    """Something has happened in a lane."""

    number: int
    lane: str


def die(step: str) -> None:
    for number in SIGNALS:
        order = FOLDER / f"{step}.{number.name}"
        try:
            order.rename(order.with_suffix(f".{os.getpid()}"))
        except FileNotFoundError:
            continue
        os.kill(os.getpid(), number)


async def _post(good: Good, *arguments: Any) -> Any:
    asyncio.get_running_loop().call_later(POSTING_S, die, "posting")
    answer = await good(*arguments)
    die("posted")
    return answer


async def _read(good: Good, *arguments: Any) -> Any:
    batch = await good(*arguments)
    if batch.events:
        die("read")
    return batch


def _store(good: Good, claim: Claim, *, end: bool = False) -> Any:
    if end:
        die("ending")
    is_stored = good(claim, end=end)
    if not end:
        die("stored")
    return is_stored


def _claim(good: Good, *arguments: Any) -> Any:
    claims = good(*arguments)
    if claims:
        die("claimed")
    return claims


def _look_up(good: Good, host: Any, *arguments: Any, **named: Any) -> Any:
    if str(host).endswith(DOMAIN):
        host = json.loads((FOLDER / NAMES).read_text())[host]
    return good(host, *arguments, **named)


HURRIED: Final[list[tuple[Any, str, Any]]] = [
    (callbacks, "TIMEOUT_S", TIMEOUT_S),
    (event_deliveries, "PAUSES_MS", PAUSES_MS),
    (event_deliveries, "LEASE_MS", LEASE_MS),
    (event_subscriptions, "LEASE_MS", LEASE_MS),
]
DYING: Final[list[tuple[Any, str, Good]]] = [
    (event_deliveries, "claim_subscriptions", _claim),
    (event_delivery, "read_batch", _read),
    (callbacks.Callbacks, "post_message", _post),
    (Claim, "store", _store),
    (socket, "getaddrinfo", _look_up),
]


def plant() -> None:
    """Let this process die when it is told to, and hurry."""
    setattr(callbacks, "PORTS", {"https": int((FOLDER / "port").read_text())})  # noqa: B010 - it is another's
    for owner, name, value in HURRIED:
        setattr(owner, name, value)
    for owner, name, work in DYING:
        setattr(owner, name, _around(getattr(owner, name), work))


def _around(good: Good, work: Good) -> Good:
    @wraps(good)
    def either(*arguments: Any, **named: Any) -> Any:
        return work(good, *arguments, **named)

    return either


class RolledBack(Exception):
    """What happened did not."""


def emit_until_enough() -> None:
    """Let something happen, or nearly, and write it down, until that is enough."""
    chance, number = random.Random(1), 0  # noqa: S311 - no secret
    while not (FOLDER / ENOUGH).exists():
        number += 1
        lane, is_kept = chance.choice("ab"), chance.random() < 0.8
        try:
            with transaction.atomic():
                mcp.emit(Happened(number, lane))
                time.sleep(chance.uniform(0, 0.05))
                if not is_kept:
                    raise RolledBack
        except RolledBack:
            lane = ""
        with (FOLDER / EMITTED).open("a") as file:
            file.write(f"{number} {lane}\n")
        time.sleep(chance.uniform(0, 0.6))


if str(FOLDER) != ".":
    plant()
