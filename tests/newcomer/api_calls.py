"""Calls the lists of all views of Django REST framework that a project has.

As a superuser and as nobody, each by its tool and over HTTP: prints what differs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import transaction  # noqa: E402
from django.test import Client as Browser  # noqa: E402
from django.urls import get_resolver  # noqa: E402

from mcp_app.catalog.registry import Registry  # noqa: E402
from mcp_app.models import Server  # noqa: E402
from mcp_app.test import Client  # noqa: E402

registry = Registry()


class ProjectClient(Client):
    _registry = registry


def views_of(patterns: Any) -> Iterator[Any]:
    for each in patterns:
        if hasattr(each, "url_patterns"):
            yield from views_of(each.url_patterns)
        elif hasattr(each.callback, "cls"):
            yield each.callback.cls


def unlike(user: Any) -> Iterator[str]:
    """Yield the lists whose tool and whose address answer otherwise."""
    client, browser = ProjectClient(user), Browser(headers={"Host": "localhost"})
    browser.raise_request_exception = False
    if user is not None:
        browser.force_login(user, backend=settings.AUTHENTICATION_BACKENDS[-1])
    for name, tool in registry.tools.items():
        method, _, path = getattr(tool.function, "request", "").partition(" ")
        needed = tool.definition.input_schema.get("required")
        if method != "GET" or "{" in path or needed:
            continue
        with transaction.atomic():
            response = browser.get(path, headers={"Accept": "application/json"})
            transaction.set_rollback(True)
        with transaction.atomic():
            try:
                result = client.try_call(name)
                is_error, data = result.is_error, result.data
            except Exception as error:
                is_error, data = True, repr(error)
            transaction.set_rollback(True)
        if is_error != (response.status_code >= 400):
            yield f"{user}: {name}: {response.status_code}, but {data}"
        elif response.get("Content-Type") == "application/json" and not is_error:
            seen[str(user)] += 1
            if data != response.json():
                yield f"{user}: {name}: {data}"


call_command("migrate", verbosity=0)
users = get_user_model()._default_manager
boss = users.create_superuser("boss", "boss@example.org", "x")
for view in dict.fromkeys(views_of(get_resolver().url_patterns)):
    registry.rest(view)
tools, problems = len(registry.tools), [*registry.toolset_problems]
Server.objects.update(access="public")
seen = {str(user): 0 for user in (boss, None)}
told = [text for user in (boss, None) for text in unlike(user)]
report = {"tools": tools, "problems": problems, "unlike": told, "seen": seen}
sys.stdout.write(json.dumps(report))
