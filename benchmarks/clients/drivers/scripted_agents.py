"""What agents with a scripted model share; it needs nothing but Python.

    python agent_langchain.py http://127.0.0.1:8000/mcp slow_compute '{"seconds": 5}'

The model calls the tool, then `get_task_result` for as long as it is told to do so.
What it has read, each time, goes to standard output as JSON.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys


class Script:
    """`read` is what the model has read of its tools, in order."""

    def __init__(self, tool, arguments):
        self.first = (tool, arguments)
        self.read = []

    def next_call(self):
        """Return the name and the arguments of the next call; None at the end."""
        if not self.read:
            return self.first
        task = re.search(r"task='([\w-]+)'", self.read[-1])
        return ("get_task_result", {"task": task[1], "wait": 1}) if task else None


def main(run):
    """Run an agent by `run(url, script)`."""
    url, tool, arguments = sys.argv[1:]
    script = Script(tool, json.loads(arguments))
    asyncio.run(run(url, script))
    print(json.dumps(script.read))
