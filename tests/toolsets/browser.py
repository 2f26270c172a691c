"""A browser of the office by WebTest, and what a site holds, to compare both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.utils import timezone, translation
from webtest import TestApp

from tests.toolsets.views import Respond

BERLIN = "tests.toolsets.browser.german_in_karachi"


def german_in_karachi(get_response: Respond) -> Respond:
    """A middleware with a language and a zone of its own."""

    def respond(request: HttpRequest) -> HttpResponse:
        with translation.override("de"), timezone.override("Asia/Karachi"):
            return get_response(request)

    return respond


def _serve(handler: WSGIHandler, environ: Any, start_response: Any) -> list[bytes]:
    """Serve a request within the test's transaction, as Django's client does."""
    signals = (request_started, request_finished)
    for each in signals:
        each.disconnect(close_old_connections)
    try:
        response = handler(environ, start_response)
        body = b"".join(response)
        response.close()
    finally:
        for each in signals:
            each.connect(close_old_connections)
    return [body]


def browser_of(user: User) -> Any:
    """Return a browser in which somebody is logged in."""
    client = Client()
    client.force_login(user)
    serve = partial(_serve, WSGIHandler())
    app = TestApp(serve, extra_environ={"HTTP_HOST": "localhost"})
    app.set_cookie("sessionid", client.cookies["sessionid"].value)
    return app


def rows_of_site() -> dict[str, Any]:
    """Return all rows of the shop, and the history without its times."""
    rows: dict[str, Any] = {
        model.__name__: [*model._default_manager.order_by("pk").values()]
        for model in apps.get_app_config("drill").get_models(include_auto_created=True)
    }
    rows["users"] = [*User.objects.order_by("pk").values()]
    columns = ("user_id", "object_id", "action_flag", "change_message", "object_repr")
    rows["history"] = [*LogEntry.objects.order_by("pk").values(*columns)]
    return rows


@contextmanager
def undone() -> Iterator[None]:
    """Undo what is written inside."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def rows_after(
    function: Callable[[], object], read: Callable[[], dict[str, Any]] = rows_of_site
) -> dict[str, Any]:
    """Return what the site holds after a function, and undo it."""
    with undone():
        function()
        return read()
