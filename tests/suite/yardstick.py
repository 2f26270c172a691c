"""How fast this machine is just now, so that seconds mean the same everywhere.

A unit is what the standard library needs to read a `tools/call` message 280,000 times:
one second of the processor that the suite's bounds were set on.  What shares a core, or
a slower machine, makes a unit longer, and all seconds are divided by it.  From one
moment to the next it varies by half: what stands for the middle of a run is the mean of
many short samples.
"""

from __future__ import annotations

import json
import time
from typing import Final

MESSAGE: Final = (
    '{"jsonrpc":"2.0","id":1234567,"method":"tools/call",'
    '"params":{"name":"drill_add","arguments":{"a":20,"b":22}}}'
)
ROUNDS: Final = 280_000
SAMPLE: Final = 10
"""The part of a unit that a sample is."""


def measure(part: int = 1) -> float:
    """Return the processor seconds of one unit, as they are now, by a part of one."""
    begin = time.process_time()
    for _ in range(ROUNDS // part):
        json.loads(MESSAGE)
    return (time.process_time() - begin) * part
