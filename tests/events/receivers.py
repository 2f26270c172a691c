"""A receiver of webhooks on loopback, with a certificate of its own."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.asgi_client import JsonObject
from tests.egress.certificates import write_certificate
from tests.egress.peer import LOOPBACK, Peer, Received, answer, peer_on

SECRET: Final = f"whsec_{b64encode(b'a' * 32).decode()}"
OTHER_SECRET: Final = f"whsec_{b64encode(b'b' * 64).decode()}"


@dataclass
class Receiver:
    """It agrees to be called, and takes what it gets with `reply`."""

    peer: Peer
    folder: Path
    reply: bytes = field(default_factory=answer)
    agreement: bytes | None = None
    """What it says to a challenge, in place of an echo."""

    @property
    def url(self) -> str:
        return f"https://localhost:{self.peer.port}/hooks/a?key=b"

    def settings(self, **options: Any) -> dict[str, Any]:
        """Return `MCP["EVENTS"]` by which it can be had."""
        return {
            "networks": LOOPBACK,
            "ca": str(self.folder / "certificate.pem"),
            **options,
        }

    def delivery(self, **more: Any) -> JsonObject:
        return {"mode": "webhook", "url": self.url, "secret": SECRET, **more}

    @property
    def challenges(self) -> list[Received]:
        return [each for each in self.peer.received if "challenge" in each.json]

    @property
    def events(self) -> list[Received]:
        return [each for each in self.peer.received if "challenge" not in each.json]

    async def send(self, request: Received, writer: asyncio.StreamWriter) -> None:
        challenge = request.json.get("challenge")
        echo = answer({"challenge": challenge}) if challenge else self.reply
        agreement = self.agreement if challenge else None
        writer.write(echo if agreement is None else agreement)
        await writer.drain()


@asynccontextmanager
async def receiver_in(folder: Path, name: str = "localhost") -> AsyncIterator[Receiver]:
    write_certificate(folder, name)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    async with peer_on(tls=tls) as peer:
        receiver = Receiver(peer, folder)
        peer.send = receiver.send
        yield receiver
