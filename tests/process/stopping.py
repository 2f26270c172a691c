"""A process of its own for each way in which signals come; it prints what happens.

    python -m tests.process.stopping

Each case is forked by one that has loaded everything.  After what it says comes a line
with its name and its exit status.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Final

import django
import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.drill.settings")
django.setup()

from mcp_app.process.lifecycle import install_drain  # noqa: E402 - it needs the settings

DRAIN_S: Final = 0.2


class Drained:
    """What is stopped: it says so."""

    at_close: Callable[[], None] | None = None

    def __init__(self, name: str = "process", seconds: float = DRAIN_S) -> None:
        self.loop = asyncio.get_running_loop()
        self._name = name
        self._seconds = seconds

    async def drain(self) -> None:
        say(f"{self._name} drains")
        await asyncio.sleep(self._seconds)
        say(f"{self._name} has drained")

    def close(self) -> None:
        say(f"{self._name} closes")


def say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def signalled(number: int = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


async def handler_of_the_loop() -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        say("server stops")
        stopped.set()

    loop.add_signal_handler(signal.SIGTERM, stop)
    loop.add_signal_handler(signal.SIGUSR1, say, "another signal")
    install_drain(Drained())
    signalled(signal.SIGUSR1)
    signalled()
    await stopped.wait()


async def handler_of_python() -> None:
    """The server has a plain handler, as uvicorn and daphne do."""
    stopped = asyncio.Event()

    def stop(number: int, frame: object) -> None:
        say("server stops")
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    install_drain(Drained())
    signalled()
    signalled()
    await stopped.wait()
    signalled()


async def no_handler() -> None:
    install_drain(Drained())
    signalled()
    await asyncio.sleep(10)


async def ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    install_drain(Drained())
    signalled()
    await asyncio.sleep(DRAIN_S)


async def hurry() -> None:
    """Whoever asks again by SIGINT does not wait for the drain."""
    stopped = asyncio.Event()

    def stop(number: int, frame: object) -> None:
        say(f"server gets {signal.Signals(number).name}")
        if number == signal.SIGINT:
            stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    install_drain(Drained(seconds=10))
    signalled()
    await asyncio.sleep(DRAIN_S)
    signalled(signal.SIGINT)
    await stopped.wait()


async def another_thread() -> None:
    process = Drained()
    await asyncio.to_thread(install_drain, process)
    say(f"handler {signal.getsignal(signal.SIGTERM).name}")  # type: ignore[union-attr]


async def taken_over(name: str) -> None:
    """A second loop of the same thread takes the place of the first."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, say, "server stops")
    install_drain(Drained(name))
    if name == "second":
        signalled()
        await asyncio.sleep(2 * DRAIN_S)


async def replaced_beside() -> None:
    """The first process is replaced while its loop still runs."""
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    install_drain(Drained("first"))
    install_drain(Drained("second"))
    signalled()
    await stopped.wait()


async def no_loop() -> None:
    signal.signal(signal.SIGTERM, lambda *_: say("server stops"))
    install_drain(Drained())


async def forked() -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    install_drain(Drained("parent"))
    child = os.fork()
    if not child:
        # The child's own loop, in a thread-less copy of this very frame.
        _as_child()
    _, status = await asyncio.to_thread(os.waitpid, child, 0)
    say(f"child ended by {os.waitstatus_to_exitcode(status)}")
    signalled()
    await stopped.wait()
    say("parent stops")


def _as_child() -> None:
    asyncio.events._set_running_loop(None)
    signal.set_wakeup_fd(-1)
    loop = asyncio.new_event_loop()

    async def child() -> None:
        stopped = asyncio.Event()

        def stop() -> None:
            say("child stops")
            stopped.set()

        loop.add_signal_handler(signal.SIGTERM, stop)
        install_drain(Drained("child"))
        signalled()
        await stopped.wait()

    loop.run_until_complete(child())
    os._exit(7)


def twice() -> None:
    for name in ("first", "second"):
        asyncio.run(taken_over(name))


def late() -> None:
    asyncio.run(no_loop())
    signalled()


CASES: Final[Mapping[str, Callable[[], None]]] = {
    "asyncio": lambda: asyncio.run(handler_of_the_loop()),
    "uvloop": lambda: uvloop.run(handler_of_the_loop()),
    "python": lambda: asyncio.run(handler_of_python()),
    "python on uvloop": lambda: uvloop.run(handler_of_python()),
    "default": lambda: asyncio.run(no_handler()),
    "ignored": lambda: asyncio.run(ignored()),
    "hurry": lambda: asyncio.run(hurry()),
    "thread": lambda: asyncio.run(another_thread()),
    "twice": twice,
    "beside": lambda: uvloop.run(replaced_beside()),
    "late": late,
    "fork": lambda: asyncio.run(forked()),
}


def main() -> None:
    for name, case in CASES.items():
        child = os.fork()
        if not child:
            case()
            return
        _, status = os.waitpid(child, 0)
        say(f"{name}: {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
