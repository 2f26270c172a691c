"""Apache and HAProxy in front of a server, as docs/deploy/proxies.md says."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.drill.ports import HOST, free_port, has_listener
from tests.drill.programs import Program
from tests.process.nginx import START_S, documented, replaced

_MODULES: Final = (
    *("mpm_event", "authz_core", "ssl", "headers", "proxy", "proxy_http"),
    *("reqtimeout", "socache_shmcb", "env", "setenvif", "filter", "deflate", "alias"),
)
_LIBRARY: Final = "/usr/lib/apache2/modules"


def program(name: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is missing: it comes with the system.")
    return found


class Proxy:
    """A proxy that runs; `url` is that of the endpoint through it."""

    name = ""
    """As `mcp_check` calls it."""

    def __init__(self, folder: Path, upstream: int, certificate: Path) -> None:
        self.folder = folder
        self.upstream = upstream
        self.certificate = certificate
        self._program: Program | None = None
        # Lines to paste may name it: it stays.
        self.port = free_port()
        self.url = f"https://{HOST}:{self.port}/mcp"
        self.reconfigure(lambda text: text)

    def reconfigure(self, change: Callable[[str], str]) -> None:
        self.stop()
        path = self.folder / "proxy.conf"
        path.write_text(self.framed(change(self.block())))
        self._program = Program(self.command(path))
        self._program.wait_until(lambda: has_listener(self.port), START_S)

    def block(self) -> str:
        """Return the documented block with these addresses."""
        raise NotImplementedError

    def framed(self, block: str) -> str:
        """Return a whole configuration."""
        raise NotImplementedError

    def command(self, path: Path) -> list[str]:
        """Return the command that runs it in the foreground."""
        raise NotImplementedError

    def inside(self, text: str, line: str) -> str:
        """Return a block with one line more, after those that it may contradict."""
        raise NotImplementedError

    def stop(self) -> None:
        if self._program is not None:
            self._program.stop()


class Apache(Proxy):
    name = "Apache"

    def inside(self, text: str, line: str) -> str:
        place = 'ProxyPass "/"'
        return replaced(text, {place: f"{line}\n    {place}"})

    def block(self) -> str:
        own = {
            "*:443": f"{HOST}:{self.port}",
            "/etc/ssl/mcp.example.com.crt": str(self.certificate),
            "/etc/ssl/mcp.example.com.key": str(self.certificate),
            "http://127.0.0.1:8000/": f"http://localhost:{self.upstream}/",
        }
        return replaced(documented("apache", "VirtualHost"), own)

    def framed(self, block: str) -> str:
        folder = self.folder
        modules = "\n".join(
            f"LoadModule {each}_module {_LIBRARY}/mod_{each}.so" for each in _MODULES
        )
        # Workers of root would be another user's, who has no folders here.
        user = "" if os.getuid() else "User www-data\nGroup www-data"
        return (
            f"ServerRoot {folder}\nPidFile {folder}/apache.pid\n{modules}\n{user}\n"
            f"ServerName {HOST}\nListen {HOST}:{self.port}\n"
            f"ErrorLog {folder}/error.log\nDefaultRuntimeDir {folder}\n"
            f"Mutex file:{folder}\nDocumentRoot {folder}\n{block}"
        )

    def command(self, path: Path) -> list[str]:
        return [program("apache2"), "-DFOREGROUND", "-f", str(path)]


class HaProxy(Proxy):
    name = "HAProxy"

    def inside(self, text: str, line: str) -> str:
        if line.startswith("timeout server"):
            # It is the backend's.
            place = "server one"
            return replaced(text, {place: f"{line}\n    {place}"})
        place = "default_backend django"
        return replaced(text, {place: f"{line}\n    {place}"})

    def block(self) -> str:
        own = {
            ":443 ssl": f"{HOST}:{self.port} ssl",
            "/etc/haproxy/mcp.example.com.pem": str(self.certificate),
            "127.0.0.1:8000": f"127.0.0.1:{self.upstream}",
        }
        return replaced(documented("haproxy", "frontend"), own)

    def framed(self, block: str) -> str:
        return f"global\n    maxconn 200\n\n{block}"

    def command(self, path: Path) -> list[str]:
        return [program("haproxy"), "-db", "-f", str(path)]
