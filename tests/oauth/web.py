"""A host on the web, which serves one document over TLS on loopback."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from tests.egress.certificates import write_certificate

HOST: Final = "program.example"


class Web(ThreadingHTTPServer):
    name: str
    document: dict[str, Any]
    content_type = "application/json"
    requests = 0

    @property
    def host(self) -> str:
        return f"{self.name}:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"https://{self.host}/client.json"


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        web: Any = self.server
        web.requests += 1
        body = json.dumps(web.document).encode()
        self.send_response(200)
        self.send_header("Content-Type", web.content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def web(directory: Path, name: str = HOST) -> Iterator[Web]:
    """Serve, with a certificate of its own; who trusts it is in `directory`."""
    write_certificate(directory, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate.pem", directory / "key.pem")
    server = Web(("127.0.0.1", 0), Answer)
    server.name = name
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join(30)
    server.server_close()
