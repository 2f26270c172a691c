"""mcp-remote, the bridge: the official Python SDK starts it, and it connects."""

from __future__ import annotations

from drive_python_sdk import connect
from driving import headers, main


def bridged(job):
    """Return the job in which the SDK starts the bridge."""
    only = {"http": "http-only", "sse": "sse-only"}[job["transport"]]
    command = [f"{job['modules']}/.bin/mcp-remote", job["url"], "--transport", only]
    for name, value in headers(job).items():
        command += ["--header", f"{name}: {value}"]
    env = {"HOME": job["home"], "PATH": job["path"], "NO_COLOR": "1", "BROWSER": "true"}
    return {**job, "transport": "stdio", "command": command, "env": env}


main(lambda job: connect(bridged(job)))
