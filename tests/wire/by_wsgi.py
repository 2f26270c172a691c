"""Checks every JSON-RPC message that a WSGI application sends.

The application is called as the ASGI one that `WireCheck` knows: nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, MutableMapping
from io import BytesIO
from typing import Any, TypeAlias

from tests.wire.middleware import AsgiMessage, Receive, Scope, Send, WireCheck

Environment: TypeAlias = MutableMapping[str, Any]
WsgiApplication: TypeAlias = Callable[
    [Environment, Callable[..., Any]], Iterable[bytes]
]


class WsgiCheck:
    """WSGI middleware; `report` gets a sentence for each violation."""

    def __init__(
        self, application: WsgiApplication, report: Callable[[str], object]
    ) -> None:
        self._application = application
        self._check = WireCheck(self._as_asgi, report)

    def __call__(
        self, environ: Environment, start_response: Callable[..., Any]
    ) -> list[bytes]:
        scope = {
            "type": "http",
            "method": environ["REQUEST_METHOD"],
            "path": environ.get("SCRIPT_NAME", "") + environ["PATH_INFO"],
            "query_string": environ.get("QUERY_STRING", "").encode("latin-1"),
            "headers": _headers(environ),
            "environ": environ,
            "start_response": start_response,
        }
        sent: list[bytes] = []

        async def receive() -> AsgiMessage:
            body = environ["wsgi.input"].read() if _has_body(environ) else b""
            return {"type": "http.request", "body": body}

        async def send(message: AsgiMessage) -> None:
            sent.append(message.get("body", b""))

        try:
            self._check(scope, receive, send).__await__().send(None)
        except StopIteration:
            return sent
        raise RuntimeError("A WSGI application has waited for something.")

    async def _as_asgi(self, scope: Scope, receive: Receive, send: Send) -> None:
        environ, answered = scope["environ"], scope["start_response"]
        environ["wsgi.input"] = BytesIO((await receive())["body"])
        begun: AsgiMessage = {"type": "http.response.start"}

        def start_response(status: str, headers: list[tuple[str, str]]) -> None:
            begun["status"] = int(status[:3])
            begun["headers"] = [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in headers
            ]
            answered(status, headers)

        parts = self._application(environ, start_response)
        try:
            body = b"".join(parts)
        finally:
            getattr(parts, "close", lambda: None)()
        await send(begun)
        await send({"type": "http.response.body", "body": body})


def _has_body(environ: Environment) -> bool:
    return bool(environ.get("CONTENT_LENGTH") or "HTTP_TRANSFER_ENCODING" in environ)


def _headers(environ: Environment) -> list[tuple[bytes, bytes]]:
    return [
        (
            key.removeprefix("HTTP_").replace("_", "-").lower().encode("latin-1"),
            str(value).encode("latin-1"),
        )
        for key, value in environ.items()
        if key.startswith("HTTP_") or key in ("CONTENT_TYPE", "CONTENT_LENGTH")
    ]
