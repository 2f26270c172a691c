"""The wheel in an environment of its own: what it brings, and that it serves with that.

Nothing is fetched: what the wheel requires is linked from the environment of the tests.
"""

from __future__ import annotations

import re
import sys
import venv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.drill.ports import free_port
from tests.drill.programs import ProgramFailed
from tests.newcomer.programs import CHECKOUT, run, serving, shell_environment

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wheel")]

BROUGHT = {
    "asgiref",
    "channels",
    "cryptography",
    "django",
    "jsonschema-rs",
    "orjson",
    "pydantic",
}
BY_EXTRAS = {"daphne", "djangorestframework", "channels-redis", "psycopg", "twisted"}

URLS = """\
from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("", include("mcp_app.urls")), path("admin/", admin.site.urls)]
"""
ASGI = """
import mcp_app.asgi

application = mcp_app.asgi.application(application)
"""
OPEN = (
    "from mcp_app.models import Server;"
    "Server.objects.filter(slug='default').update(access='public')"
)
MAKE = """
import json
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from mcp_app.models import Tool
settings.ALLOWED_HOSTS = ["testserver"]
get_user_model().objects.create_superuser("eve")
client = Client()
client.force_login(get_user_model().objects.get())
add = "/admin/mcp_app/tool/add/"
assert "Ask a weather station" in client.get(add).content.decode()
assert "Harbour" in client.get(add, {"kind": "station"}).content.decode()
sent = {"kind": "station", "name": "wind", "station": "harbour"}
sent |= {"title": "Wind", "description": "The wind, now.", "position": "0"}
sent |= {"changes-asked": "on", "changes": "reads"}
made = client.post(f"{add}?kind=station", sent)
assert made.status_code == 302, made.content.decode()
row = Tool.objects.get()
publish = f"/admin/mcp_app/tool/{row.pk}/publish/"
assert "harbour" in client.get(publish).content.decode()
client.post(publish, {"looked_at": row.content_hash, "number": 0})
row.refresh_from_db()
call = {"name": "wind", "arguments": {}}
meta = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "c", "version": "1"}}
meta = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
meta["io.modelcontextprotocol/clientCapabilities"] = {}
message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
answer = client.post(
    "/mcp",
    json.dumps({**message, "params": {**call, "_meta": meta}}),
    content_type="application/json",
    headers={
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "wind",
    },
)
print(row.state.label, json.loads(answer.content)["result"]["content"][0]["text"])
"""
MADE = "Published 12.5 m/s\n"
LACKING = """
MCP = {
    "AUTHENTICATION": {"drf": "rest_framework.authentication.TokenAuthentication"},
    "DOORBELL": "rings",
}
CHANNEL_LAYERS = {
    "rings": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"},
}
"""
UNTOUCHED = """
import sys

def test_nothing_is_imported():
    assert not {"django", "mcp_app"} & sys.modules.keys()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "wheel", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


class Environment:
    def __init__(self, folder: Path) -> None:
        venv.create(folder / "env")
        self.python = str(folder / "env/bin/python")
        [self.packages] = folder.glob("env/lib/python3*/site-packages")
        self.site = folder / "site"

    def install(self, wheel: Path) -> Distribution:
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install"]
        options = ["--quiet", "--no-index", "--no-deps", str(wheel)]
        run([*pip, *options], CHECKOUT, shell_environment())
        [installed] = distributions(path=[str(self.packages)])
        return installed

    def link(self, names: Iterable[str]) -> None:
        """Make distributions of the tests' environment importable here."""
        for name in names:
            there = distribution(name)
            for part in {file.parts[0] for file in there.files or ()}:
                link, target = self.packages / part, Path(str(there.locate_file(part)))
                if part not in ("..", "__pycache__") and not link.exists():
                    link.symlink_to(target)

    def start_site(self) -> None:
        self.site.mkdir()
        self.run("-m", "django", "startproject", "mysite", ".")
        self.append("settings", '\nINSTALLED_APPS += ["mcp_app"]\n')
        (self.site / "mysite/urls.py").write_text(URLS, encoding="utf-8")
        self.append("asgi", ASGI)

    def append(self, module: str, text: str) -> None:
        with (self.site / f"mysite/{module}.py").open("a", encoding="utf-8") as file:
            file.write(text)

    @contextmanager
    def changed(self, text: str) -> Iterator[None]:
        settings = self.site / "mysite/settings.py"
        before = settings.read_text(encoding="utf-8")
        self.append("settings", text)
        try:
            yield
        finally:
            settings.write_text(before, encoding="utf-8")

    def run(self, *arguments: str) -> str:
        return run([self.python, *arguments], self.site, shell_environment())


def required(names: Iterable[str]) -> set[str]:
    everything: set[str] = set()
    waiting = list(names)
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in everything:
            everything.add(name)
            waiting += direct(distribution(name))
    return everything


def direct(package: Distribution) -> set[str]:
    requirements = map(Requirement, package.requires or ())
    return {
        canonicalize_name(each.name)
        for each in requirements
        if each.marker is None or each.marker.evaluate({"extra": ""})
    }


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--wheel-dir", str(folder), str(CHECKOUT)]
    run([*pip, *options], CHECKOUT, shell_environment())
    [wheel] = folder.glob("*.whl")
    made = Environment(folder)
    brought = direct(made.install(wheel))
    assert brought == BROUGHT
    everything = required(brought)
    assert everything.isdisjoint(BY_EXTRAS)
    made.link(everything)
    made.start_site()
    made.run("manage.py", "migrate")
    return made


def test_checks_and_migrations(environment: Environment) -> None:
    assert "no issues" in environment.run("manage.py", "check")
    assert "[X] 0001" in environment.run("manage.py", "showmigrations", "mcp_app")


@pytest.mark.parametrize(
    ("server", "command"),
    [
        ("uvicorn", ["-m", "uvicorn", "mysite.asgi:application", "--port"]),
        (
            "gunicorn",
            ["-m", "gunicorn", "mysite.wsgi", "--worker-class=gthread", "--bind"],
        ),
    ],
)
def test_it_serves(environment: Environment, server: str, command: list[str]) -> None:
    environment.link(required([server]))
    environment.run("manage.py", "shell", "-v", "0", "-c", OPEN)
    port = free_port()
    at = str(port) if server == "uvicorn" else f"127.0.0.1:{port}"
    whole = [environment.python, *command, at]
    with serving(whole, environment.site, shell_environment(), port) as served:
        url = f"{served.url}/mcp"
        answer = httpx.post(url, json=INITIALIZE, headers=ACCEPT, timeout=60)
    assert answer.status_code == 200, answer.text
    assert '"protocolVersion":"2025-11-25"' in answer.text


def test_the_pytest_plugin(environment: Environment) -> None:
    """It has its fixture in the site, and costs a project without Django nothing."""
    environment.link(required(["pytest"]))
    other = environment.site.with_name("other")
    other.mkdir()
    (other / "test_other.py").write_text(UNTOUCHED, encoding="utf-8")
    printed = environment.run("-m", "pytest", "--fixtures", str(other))
    assert "mcp_client -- " in printed
    assert "1 passed" in environment.run("-m", "pytest", "-q", str(other))


def test_a_kind_of_another_package(environment: Environment) -> None:
    """As docs/kinds.md has it: its form, a publication and a call."""
    package = environment.site / "weather"
    package.mkdir()
    (package / "__init__.py").touch()
    page = (CHECKOUT / "docs/kinds.md").read_text("utf-8")
    kinds, forms, setting = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (package / "kinds.py").write_text(kinds, encoding="utf-8")
    (package / "forms.py").write_text(forms, encoding="utf-8")
    environment.run("manage.py", "shell", "-v", "0", "-c", OPEN)
    with environment.changed(setting):
        assert "no issues" in environment.run("manage.py", "check")
        assert environment.run("manage.py", "shell", "-v", "0", "-c", MAKE) == MADE


def test_an_extra_that_is_missing_is_named(environment: Environment) -> None:
    with environment.changed(LACKING), pytest.raises(ProgramFailed) as failed:
        environment.run("manage.py", "check")
    for extra in ("drf", "redis"):
        assert f'pip install "django-mcp-app[{extra}]"' in str(failed.value)
