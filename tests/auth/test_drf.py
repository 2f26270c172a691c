"""Authentication classes of Django REST framework as ways in."""

from __future__ import annotations

import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
from django.contrib.auth import get_user_model

from mcp_app.auth.drf import Bridge
from mcp_app.interface.principal import DRF, AuthenticationRequest
from mcp_app.pools.database import authenticators, writer
from mcp_app.process.runtime import Process
from mcp_app.protocol.headers import Headers
from tests.asgi_client import Client, Outcome
from tests.auth import drf_classes
from tests.drill.running import ROOT
from tests.wire.middleware import WireCheck

CLASSES: Final = "tests.auth.drf_classes"
BASIC: Final = "rest_framework.authentication.BasicAuthentication"
BY: Final = "/mcp/by-class"
SERVER: Final = {"slug": "by-class", "access": "odd named bearer basic"}
PASSWORD: Final = "correct horse battery staple"
VERSIONS: Final = ("2025-11-25", "2026-07-28")


@pytest.fixture
def mcp() -> dict[str, Any]:
    return {
        "AUTHENTICATION": {
            "named": f"{CLASSES}.NamedToken",
            "bearer": {"path": f"{CLASSES}.BearerToken"},
            "odd": f"{CLASSES}.Odd",
            "basic": BASIC,
            "token": "mcp_app.authentication.access_token",
        }
    }


@pytest.fixture
async def user(served_rows: None) -> AsyncIterator[Any]:
    users: Any = get_user_model()._default_manager
    made = await writer.run(lambda: users.create_user("ana", password=PASSWORD))
    drf_classes.seen.clear()
    yield made
    await writer.run(made.delete)


async def whoami(
    application: WireCheck, version: str = VERSIONS[1], **headers: str
) -> Any:
    client = await Client(application, version, path=BY, headers=headers).open()
    return (await client.call("drill_whoami")).result["structuredContent"]


async def listed(application: WireCheck, **headers: str) -> Outcome:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return await Client(application, path=BY, headers=named).request("tools/list")


@pytest.mark.usefixtures("server", "user")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "authorization",
    [
        "Token ana",
        "Bearer ana",
        "Basic " + b64encode(f"ana:{PASSWORD}".encode()).decode(),
    ],
)
async def test_the_user_of_a_class_comes_in(
    application: WireCheck, version: str, authorization: str
) -> None:
    found = await whoami(application, version, authorization=authorization)
    assert found["user"] == "ana"


@pytest.mark.usefixtures("server", "user")
@pytest.mark.parametrize("more", ["\xa0", "\x85", " \xa0"])
@pytest.mark.parametrize("scheme", ["Token", "Bearer"])
async def test_a_longer_token_is_another_one(
    application: WireCheck, scheme: str, more: str
) -> None:
    found = await listed(application, authorization=f"{scheme} ana{more}")
    assert found.status == 401


@pytest.mark.usefixtures("server")
async def test_the_principal(process: Process, user: Any) -> None:
    headers = Headers([(b"authorization", b"Token ana")])
    asked = AuthenticationRequest(
        headers=headers, host="localhost", path=BY, server="by-class"
    )
    bridge = Bridge(drf_classes.NamedToken)
    found = await authenticators.run(bridge, asked)
    assert found is not None
    assert found.key.split("\x1f") == [DRF, str(user.pk), f"{CLASSES}.NamedToken"]
    # None asks Django for the user's rights.
    assert found.permissions is None


@pytest.mark.usefixtures("server", "user")
async def test_the_class_sees_the_request(application: WireCheck) -> None:
    client = Client(application, path=f"{BY}/?key=secret", headers={"x-a": "b"})
    assert (await client.request("tools/list")).status == 401
    (seen,) = drf_classes.seen
    assert (seen.method, seen.path, seen.get_host()) == ("POST", f"{BY}/", "localhost")
    assert seen.META["REMOTE_ADDR"] == "127.0.0.1"
    assert seen.headers["X-A"] == "b"
    # Credentials are in no address, and not in a message.
    assert dict(seen.query_params) == {}
    assert seen._request.read() == b""


@pytest.mark.usefixtures("server", "user")
@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"authorization": "Token berta"}, "Incorrect authentication credentials."),
        ({"authorization": "Token a b"}, "Invalid token header. Token string should"),
        ({"x_wish": "failed"}, "It is over."),
        ({"x_wish": "list"}, "One. Two."),
        ({"x_wish": "nobody"}, "Authentication credentials were not provided."),
    ],
)
async def test_what_a_class_refuses_is_wrong(
    application: WireCheck, headers: dict[str, str], message: str
) -> None:
    found = await listed(application, **headers)
    assert found.status == 401
    assert found.error["message"].startswith(message)
    assert 'error="invalid_token"' in found.headers["www-authenticate"]


@pytest.mark.usefixtures("server", "user")
@pytest.mark.parametrize(
    ("wish", "status", "wait"),
    [
        *(("denied", 403, None), ("forbidden", 403, None), ("missing", 401, None)),
        *(("not_found", 401, None), ("garbled", 400, None), ("throttled", 429, "7")),
        *(("throttled_for_ever", 429, "60"), ("away", 503, "5"), ("refused", 503, "5")),
    ],
)
async def test_what_classes_say(
    application: WireCheck, wish: str, status: int, wait: str | None
) -> None:
    found = await listed(application, x_wish=wish)
    assert (found.status, found.headers.get("retry-after")) == (status, wait)
    assert b"secret" not in found.raw


@pytest.mark.usefixtures("server", "user")
@pytest.mark.parametrize(
    "wish", ["broken", "teapot", "anonymous", "other", "exit", "interrupt", "generator"]
)
async def test_no_user_lets_nobody_in(application: WireCheck, wish: str) -> None:
    found = await listed(application, x_wish=wish)
    assert found.status == 500
    assert b"secret" not in found.raw


@pytest.mark.usefixtures("server")
async def test_an_inactive_user_stays_out(application: WireCheck, user: Any) -> None:
    user.is_active = False
    await writer.run(user.save)
    found = await listed(application, authorization="Token ana")
    assert found.status == 401
    assert found.error["message"] == "The user may not log in."


def run(program: str) -> str:
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_tokens_of_the_framework() -> None:
    """With its table, in a site that has it."""
    assert run(PROGRAM).split() == ["ana", "Invalid", "token.", "None"]


PROGRAM: Final = """
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    SECRET_KEY="k" * 50,
    INSTALLED_APPS=[
        "django.contrib.auth", "django.contrib.contenttypes",
        "rest_framework.authtoken", "mcp_app",
    ],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
)
django.setup()
for app in ("contenttypes", "auth", "authtoken"):
    call_command("migrate", app, verbosity=0)

from django.contrib.auth.models import User
from rest_framework.authtoken.models import Token
from mcp_app import AuthenticationFailed, AuthenticationRequest
from mcp_app.auth.authenticators import import_verifier
from mcp_app.protocol.headers import Headers

token = Token.objects.create(user=User.objects.create(username="ana"))
bridge, _ = import_verifier("rest_framework.authentication.TokenAuthentication")

def asked(*headers):
    return bridge(
        AuthenticationRequest(headers=Headers(headers), host="a", path="/", server="s")
    )

print(asked((b"authorization", f"Token {token.key}".encode())).user_name)
try:
    asked((b"authorization", b"Token wrong"))
except AuthenticationFailed as error:
    print(error)
print(asked())
"""


def test_a_site_without_the_framework() -> None:
    """Nothing of it is imported where no way in is a class of it."""
    program = """
import sys
sys.modules["rest_framework"] = None
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="k" * 50,
    INSTALLED_APPS=[
        "django.contrib.auth", "django.contrib.contenttypes", "mcp_app",
    ],
)
django.setup()
from mcp_app.auth.authenticators import Unusable, import_verifier
import mcp_app.auth.principals, mcp_app.transports.http.handler, mcp_app.checks
import_verifier("mcp_app.authentication.access_token")
for path in ("mcp_app.models.Server", "rest_framework.authentication.Any"):
    try:
        import_verifier(path)
    except Unusable as error:
        print(error)
"""
    first, second = run(program).splitlines()
    assert "is a class, but not an authentication class" in first
    assert "cannot be imported" in second
