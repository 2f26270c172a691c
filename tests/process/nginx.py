"""nginx in front of a server, with the configuration of docs/security.md."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.drill.ports import HOST, free_port
from tests.drill.running import ROOT

START_S: Final = 60
DOCUMENT: Final = ROOT / "docs" / "security.md"
_BLOCK: Final = re.compile(r"```nginx\n(.*?)```", re.DOTALL)
_FRAME: Final = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log info;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {log_format}
    {block}
}}
"""


class Nginx:
    """A running nginx; `url` is that of the endpoint through it.

    It has no TLS, and no other port.  `changed` are lines of the documented block with
    what stands there instead, such as shorter times.
    """

    def __init__(self, folder: Path, upstream: int, changed: Mapping[str, str]) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            pytest.skip("nginx is missing: it comes with the system.")
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}/mcp"
        self._log = folder / "error.log"
        path = folder / "nginx.conf"
        path.write_text(_configuration(folder, self.port, upstream, changed))
        self._process = subprocess.Popen(
            [program, "-p", str(folder), "-c", str(path), "-e", str(self._log)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + START_S
        while not self._answers():
            assert self._process.poll() is None, self.log
            assert time.monotonic() < end, self.log
            time.sleep(0.01)

    @property
    def log(self) -> str:
        """What it has written, from the level `info` on."""
        return self._log.read_text() if self._log.exists() else ""

    def _answers(self) -> bool:
        with socket.socket() as caller:
            return caller.connect_ex((HOST, self.port)) == 0

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(START_S)


def _configuration(
    folder: Path, port: int, upstream: int, changed: Mapping[str, str]
) -> str:
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = [each for each in _BLOCK.findall(text) if "upstream" in each]
    assert len(blocks) == 1
    block = blocks[0]
    own = {
        "server 127.0.0.1:8000;": f"server 127.0.0.1:{upstream};",
        "listen 443 ssl;": f"listen {HOST}:{port};",
        "/var/log/nginx/mcp.log": f"{folder}/access.log",
    }
    for line, instead in {**own, **changed}.items():
        assert block.count(line) == 1, f"{line!r} does not stand there once."
        block = block.replace(line, instead)
    formats = re.findall(r"^# (log_format .*;)$", block, re.MULTILINE)
    return _FRAME.format(folder=folder, block=block, log_format="\n".join(formats))
