"""Static files through the middleware, as an ASGI server asks for them."""

from __future__ import annotations

from django.core.signals import request_finished
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory

from mcp_project.static_files import static_files


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


def test_a_file_does_not_end_the_request() -> None:
    said: list[object] = []

    def hear(sender: object, **_: object) -> None:
        said.append(sender)

    request_finished.connect(hear)
    try:
        serve = static_files(lambda _request: HttpResponse(status=404))
        served = serve(RequestFactory().get("/static/admin/css/base.css"))
    finally:
        request_finished.disconnect(hear)
    assert served.status_code == 200
    assert said == []


def test_other_paths_reach_the_site() -> None:
    response = Client().get("/static/no-such-file.css")
    assert response.status_code == 404
