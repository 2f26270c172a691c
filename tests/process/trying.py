"""A browser without scripts that tries a definition at a fixture server."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from tests.admin.pages import Fields
from tests.drill.people import NAME, PASSWORD

PATIENCE_S = 60


class Trier:
    """Logs in, opens pages, and sends their forms."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))
        login = self.fields("/admin/login/")
        self.read("/admin/login/", {**login, "username": NAME, "password": PASSWORD})

    def read(
        self,
        path: str,
        data: dict[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        body = None if data is None else urlencode(data, doseq=True).encode()
        request = Request(self._url + path, body, dict(headers or {}))  # noqa: S310 - a server of the test
        with self._opener.open(request, timeout=PATIENCE_S) as response:
            text: bytes = response.read()
        return text.decode()

    def fields(self, path: str) -> dict[str, Any]:
        return fields_of(self.read(path))


def fields_of(page: str) -> dict[str, Any]:
    fields = Fields()
    fields.feed(page)
    return fields.values
