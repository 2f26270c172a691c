"""Static files through the middleware, as an ASGI server asks for them."""

from __future__ import annotations

from django.test import AsyncClient, Client


async def test_the_style_sheet_of_the_admin_is_served_whole() -> None:
    response = await AsyncClient().get("/static/admin/css/base.css")
    assert response.status_code == 200
    assert not response.streaming
    assert response["Content-Type"].startswith("text/css")
    assert len(response.content) == int(response["Content-Length"]) > 1000


def test_a_known_file_is_not_sent_again() -> None:
    first = Client().get("/static/admin/css/base.css")
    again = Client().get(
        "/static/admin/css/base.css",
        headers={"If-Modified-Since": first["Last-Modified"]},
    )
    assert (again.status_code, again.content) == (304, b"")


def test_other_paths_reach_the_site() -> None:
    response = Client().get("/static/no-such-file.css")
    assert response.status_code == 404
