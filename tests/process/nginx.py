"""nginx in front of a server, with the configuration of docs/deploy/proxies.md."""

from __future__ import annotations

import os
import re
import shutil
import signal
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.drill.ports import HOST, free_port
from tests.drill.programs import Program
from tests.drill.running import ROOT

START_S: Final = 60
DOCUMENT: Final = ROOT / "docs/deploy/proxies.md"
_FRAME: Final = """\
daemon off;
worker_processes 1;
{user}
pid {folder}/pid;
error_log stderr info;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/proxied;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    #told
    {block}
}}
"""


class Nginx:
    """A running nginx; `url` is that of the endpoint through it.

    It has no other port, and TLS if `certificate` is a file of a certificate with its
    key.  `changed` are lines of the documented block with what stands there instead,
    such as shorter times.
    """

    def __init__(
        self,
        folder: Path,
        upstream: int | Sequence[int],
        changed: Mapping[str, str],
        certificate: Path | None = None,
    ) -> None:
        program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if program is None:
            pytest.skip("nginx is missing: it comes with the system.")
        self.port = free_port()
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://{HOST}:{self.port}/mcp"
        self._path = path = folder / "nginx.conf"
        listen = f"listen {HOST}:{self.port}"
        if certificate is not None:
            listen = f"{listen} ssl; ssl_certificate {certificate}; ssl_certificate_key"
            listen = f"{listen} {certificate}"
        own = {"listen 443 ssl;": f"{listen};", **changed}
        self._told = free_port()
        ports = [upstream] if isinstance(upstream, int) else upstream
        self._configuration = _configuration(folder, ports, own)
        self._number = 0
        self._write(lambda block: block)
        self._program = Program([program, "-p", folder, "-c", path, "-e", "stderr"])
        self._wait()

    def reconfigure(self, change: Callable[[str], str]) -> None:
        self._write(change)
        self._program.process.send_signal(signal.SIGHUP)
        self._wait()

    def _write(self, change: Callable[[str], str]) -> None:
        self._number += 1
        told = f"listen {HOST}:{self._told}; return 200 {self._number};"
        changed = change(self._configuration)
        self._path.write_text(changed.replace("#told", f"server {{ {told} }}"))

    def _wait(self) -> None:
        self._program.wait_until(self._answers, START_S)

    @property
    def log(self) -> str:
        return self._program.output

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._told}/") as answer:
                is_new = answer.read() == b"%d" % self._number
        except OSError:
            return False
        # Only now: one of the configuration before may still take requests.
        return is_new and len(self._workers()) == 1

    def _workers(self) -> list[str]:
        pid = self._program.process.pid
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    def stop(self) -> None:
        self._program.stop()


def documented(language: str, holds: str) -> str:
    """Return the block of DOCUMENT in this language that has this text."""
    text = DOCUMENT.read_text(encoding="utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    (found,) = (each for each in blocks if holds in each)
    return str(found)


def replaced(text: str, lines: Mapping[str, str]) -> str:
    for line, instead in lines.items():
        assert text.count(line) == 1, f"{line!r} does not stand there once."
        text = text.replace(line, instead)
    return text


def _configuration(
    folder: Path, ports: Sequence[int], changed: Mapping[str, str]
) -> str:
    block = documented("nginx", "upstream")
    block = block.replace("/var/log/nginx/mcp.log", f"{folder}/access.log")
    lines = re.findall(r"    server 127.0.0.1:800\d .*;\n", block)
    for number, line in enumerate(lines):
        at = number % (len(lines) // 2)
        own = line.replace(f"800{at}", str(ports[at])) if at < len(ports) else ""
        block = block.replace(line, own)
    block = replaced(block, changed)
    # Workers of root would be another user's, who has no folders here.
    user = "" if os.getuid() else "user root;"
    return _FRAME.format(folder=folder, user=user, block=block)
