"""A receiver of webhooks: `python -m tests.events.receiver HERE ELSEWHERE PORT FOLDER`.

It listens at two addresses, of which nobody may reach the second.  The folder has
`certificate.pem` and `key.pem`; `posts.jsonl` gets a line for each request before its
answer is sent.  The first label of the host says how it answers, as `WAYS` has it;
where the file `fine` is in the folder, each answers with 200.
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

POSTS: Final = "posts.jsonl"
FINE: Final = "fine"
ENDLESS_S: Final = 60
REFUSALS: Final = {"gone": 410, "large": 413}


def _draw(identifier: str, parts: int) -> bool:
    """Whether an event is one of so many; each attempt draws the same."""
    return sha256(identifier.encode()).digest()[0] % parts == 0


class Answer:
    """What a request is answered: a status, after a while, in pieces, or never."""

    def __init__(self, status: int = 200, wait_s: float = 0, drips: int = 0) -> None:
        self.status, self.wait_s, self.drips = status, wait_s, drips
        self.acknowledges = 200 <= status < 300 and drips < ENDLESS_S
        self.location, self.text = "", b""


def _moved() -> Answer:
    answer = Answer(302)
    answer.location = f"https://private.receiver.test:{sys.argv[-2]}/caught"
    return answer


def _refuse(way: str, identifier: str) -> Answer:
    return Answer(REFUSALS[way] if _draw(identifier, 3) else 200)


WAYS: Final[Mapping[str, Callable[[str, int], Answer]]] = {
    "fine": lambda _event, _attempt: Answer(),
    "shaky": lambda event, n: Answer(500 if n == 1 and _draw(event, 3) else 200),
    "gone": lambda event, _attempt: _refuse("gone", event),
    "large": lambda event, _attempt: _refuse("large", event),
    "late": lambda event, _attempt: Answer(wait_s=1 if _draw(event, 4) else 0),
    "slow": lambda event, _attempt: Answer(drips=4 if _draw(event, 4) else 0),
    "endless": lambda event, n: Answer(
        drips=ENDLESS_S if n == 1 and _draw(event, 16) else 0
    ),
    "moved": lambda event, n: _moved() if n == 1 and _draw(event, 3) else Answer(),
    "broken": lambda event, _attempt: Answer(500 if _draw(event, 8) else 200),
    "moving": lambda _event, _attempt: Answer(),
    "refusing": lambda _event, _attempt: Answer(),
}
"""How the hosts answer, by the id of an event and the number of its attempt."""


class Receiver:
    """What came so far, and where it is written; a `way` answers all."""

    url = ""
    way: Callable[[Mapping[str, Any]], Answer] | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.posts: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._attempts: Counter[tuple[str, str]] = Counter()

    def choose_answer(self, host: str, post: Mapping[str, Any]) -> Answer:
        if self.way is not None:
            return self.way(post)
        event = post.get("eventId")
        if event is None or (self.folder / FINE).exists():
            return Answer()
        with self._lock:
            self._attempts[host, event] += 1
            attempt = self._attempts[host, event]
        return WAYS.get(host, WAYS["fine"])(event, attempt)

    def write(self, **line: Any) -> None:
        with self._lock, (self.folder / POSTS).open("a") as file:
            self.posts.append(line)
            file.write(f"{json.dumps(line)}\n")


class Handler(BaseHTTPRequestHandler):
    """A request; the server has the receiver."""

    protocol_version = "HTTP/1.1"
    server: Any

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        host = (self.headers.get("Host") or "").partition(".")[0]
        with suppress(ValueError):
            self._answer(host, body, json.loads(body))

    def _answer(self, host: str, body: bytes, post: dict[str, Any]) -> None:
        receiver: Receiver = self.server.receiver
        identifier = self.headers.get("webhook-id", "")
        answer = receiver.choose_answer(host, {**post, "webhook-id": identifier})
        time.sleep(answer.wait_s)
        receiver.write(
            at=time.time(),
            to=self.connection.getsockname()[0],
            host=host,
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body.decode(),
            status=answer.status if answer.acknowledges or not answer.drips else 0,
        )
        text = answer.text or b"x" * answer.drips
        if post.get("type") == "verification" and host != "refusing":
            text = json.dumps({"challenge": post["challenge"]}).encode()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(text)))
        if answer.location:
            self.send_header("Location", answer.location)
        self.end_headers()
        for number in range(len(text) if answer.drips else 0):
            self.wfile.write(text[number : number + 1])
            time.sleep(0.2 if answer.acknowledges else 1)
        if not answer.drips:
            self.wfile.write(text)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing: the file has it all."""


def serve(address: str, port: int, receiver: Receiver) -> ThreadingHTTPServer:
    """Serve in threads, with the certificate of the folder."""
    server = ThreadingHTTPServer((address, port), Handler)
    server.daemon_threads = True
    setattr(server, "receiver", receiver)  # noqa: B010 - it has no such attribute
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(
        receiver.folder / "certificate.pem", receiver.folder / "key.pem"
    )
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    *addresses, port, folder = sys.argv[1:]
    receiver = Receiver(Path(folder))
    for address in addresses:
        serve(address, int(port), receiver)
    sys.stdout.write("Listens.\n")
    sys.stdout.flush()
    threading.Event().wait()


if __name__ == "__main__":
    main()
