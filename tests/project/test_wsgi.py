"""The project's WSGI application: Django, with the site's addresses."""

from __future__ import annotations

from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

from mcp_project.wsgi import application


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/admin", 301)])
def test_the_site_answers(path: str, status: int) -> None:
    environment: dict[str, Any] = {"PATH_INFO": path, "HTTP_HOST": "localhost"}
    setup_testing_defaults(environment)
    said: list[str] = []

    def start(status: str, headers: Any, error: Any = None) -> Any:
        said.append(status)

    body = application(environment, start)
    getattr(body, "close", lambda: None)()
    assert [each[:3] for each in said] == [str(status)]
