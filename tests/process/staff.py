"""A superuser in the admin of one process of a cluster."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import httpx

PATIENCE_S = 60


class Staff(httpx.Client):
    """Logs in, unless another one's cookies are given: sessions are everywhere.

    It may do several things at once; whether one was done is seen by where it leads,
    because what is said may be said to another.
    """

    def __init__(self, url: str, cookies: httpx.Cookies | None = None) -> None:
        super().__init__(
            base_url=url.removesuffix("/mcp"),
            follow_redirects=True,
            cookies=cookies,
            timeout=PATIENCE_S,
        )
        if cookies is None:
            self.get("/admin/login/")
            sent = {"username": "admin", "password": "admin", "next": "/admin/"}
            done = self.submit("/admin/login/", **sent)
            assert done.status_code == HTTPStatus.FOUND, done.text

    def at(self, url: str) -> Staff:
        return Staff(url, httpx.Cookies(self.cookies))

    def submit(self, path: str, **sent: Any) -> httpx.Response:
        """Post a form, and do not look where that leads: that would take its time."""
        sent["csrfmiddlewaretoken"] = self.cookies["csrftoken"]
        return self.post(path, data=sent, follow_redirects=False)

    def key(self, model: str, name: str) -> str:
        page = self.get(f"/admin/{model}/", params={"q": name}).text
        link = rf'href="/admin/{model}/(\d+)/change/[^"]*">[^/]*\b{name}<'
        found = re.search(link, page)
        assert found, page
        return found[1]

    def publish(self, model: str, key: str, version: int) -> None:
        number = self.offered(model, key, version)
        # Clients see it already where nothing can be pressed.
        if number is not None:
            done = self.press(model, key, version, number)
            assert done.status_code == HTTPStatus.FOUND, done.text

    def offered(self, model: str, key: str, version: int) -> str | None:
        page = self.get(_rollback(model, key, version)).text
        found = re.search(r'name="number" value="(\d+)"', page)
        return None if found is None else found[1]

    def press(self, model: str, key: str, version: int, number: str) -> httpx.Response:
        return self.submit(_rollback(model, key, version), number=number)

    def act(self, model: str, action: str, *keys: str) -> None:
        """Do something to rows; where a page asks before, it is answered."""
        sent = {"action": action, "_selected_action": list(keys), "confirmed": "yes"}
        done = self.submit(f"/admin/{model}/", **sent)
        assert done.status_code == HTTPStatus.FOUND, done.text

    def press_on(self, page: str) -> None:
        done = self.submit(page)
        assert done.status_code == HTTPStatus.FOUND, done.text

    def cancel_calls(self) -> int:
        page = self.get("/admin/mcp_app/session/live/").text
        buttons = re.findall(r'formaction="([^"]+/cancel/)"', page)
        for each in buttons:
            done = self.submit(each)
            assert done.status_code == HTTPStatus.FOUND, done.text
        return len(buttons)

    def form(self, model: str, key: str) -> dict[str, str]:
        page = self.get(_account(model, key)).text
        shown = re.search(r'value="(\d+)"[^>]*>[^<]*Can view tool<', page)
        assert shown, page
        names = ("name", "username", "date_joined_0", "date_joined_1")
        found = {
            name: value
            for name in names
            for value in re.findall(rf'name="{name}" value="([^"]*)"', page)
        }
        return {**found, "is_active": "on", "right": shown[1]}

    def give(self, model: str, key: str, form: dict[str, str], *, may: bool) -> None:
        """Let a user or a group see tools, or no longer; all else stays as it is."""
        right = form["right"]
        sent = {name: value for name, value in form.items() if name != "right"}
        if may:
            sent["permissions" if model == "group" else "user_permissions"] = right
        saved = self.submit(_account(model, key), **sent)
        # A form with errors is shown again.
        assert saved.status_code == HTTPStatus.FOUND, saved.text


def _account(model: str, key: str) -> str:
    return f"/admin/auth/{model}/{key}/change/"


def _rollback(model: str, key: str, version: int) -> str:
    return f"/admin/{model}/{key}/rollback/{version}/"
