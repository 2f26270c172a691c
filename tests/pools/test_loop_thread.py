"""The thread in which asgiref runs sync code for everything on the loop."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future

from asgiref.sync import sync_to_async

from mcp_app.pools import loop_thread

PATIENCE_S = 60


async def test_a_function_runs_where_async_code_has_its_statements() -> None:
    found: Future[str] = Future()
    loop_thread.submit(lambda: found.set_result(threading.current_thread().name))
    assert await sync_to_async(found.result)(PATIENCE_S)
    named = await sync_to_async(lambda: threading.current_thread().name)()
    assert found.result() == named


def test_a_fork_has_such_a_thread_of_its_own() -> None:
    done = threading.Event()
    loop_thread.submit(done.set)
    assert done.wait(PATIENCE_S)
    child = os.fork()
    if not child:
        again = threading.Event()
        loop_thread.submit(again.set)
        os._exit(0 if again.wait(PATIENCE_S) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
