"""Guards the drill's server: prints a token that may call `drill_add`, as JSON.

`python -m benchmarks.guarding` where DATABASE_URL names a database that is served.
From then on the endpoint wants a token, and the tool a permission and a group.  Where
programs can sign in, the key of an app that may do the same is printed, too.
"""

from __future__ import annotations

import json
import os

import django

NAME = "benchmark"
PERMISSION = "auth.view_group"


def main() -> None:
    """Save who may do what, and print the token."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
    django.setup()
    print(json.dumps({"token": guard(), "key": _key_of_app()}))


def _key_of_app() -> str:
    """Let a program in as the same user; return its key, "" where none can sign in."""
    from django.contrib.auth.models import User  # noqa: PLC0415

    from mcp_app.auth.authenticators import sign_in_names  # noqa: PLC0415
    from mcp_app.models import Server  # noqa: PLC0415
    from tests.auth.apps import Program  # noqa: PLC0415

    if not sign_in_names():
        return ""
    server = Server.objects.get(slug="default")
    server.access = "oauth token"
    server.save()
    Server.objects.publish([server])
    return Program(server, User.objects.get(username=NAME)).sign_in().access


def guard() -> str:
    """Save who may do what in this process's database; return the token."""
    from django.contrib.auth.models import Group, Permission, User  # noqa: PLC0415

    from mcp_app.models import AccessToken, Server, Tool  # noqa: PLC0415

    group = Group.objects.create(name=NAME)
    group.permissions.set(Permission.objects.filter(codename="view_group"))
    user = User.objects.create_user(NAME)
    user.groups.add(group)
    tool = Tool.objects.get(name="drill_add")
    tool.permission, tool.groups = PERMISSION, NAME
    tool.save()
    Tool.objects.publish([tool])
    server = Server.objects.get(slug="default")
    server.access = "token"
    server.save()
    Server.objects.publish([server])
    _row, token = AccessToken.objects.make(
        user=user, name=NAME, may=AccessToken.May.CHANGE
    )
    return token


if __name__ == "__main__":
    main()
