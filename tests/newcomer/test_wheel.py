"""The wheel in an environment of its own: what it brings, and that it serves with that.

Nothing is fetched: what the wheel requires is linked from the environment of the tests.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path
from typing import Any, Final

import pytest
from fastmcp import Client
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mcp_app.interface.errors import EXTRAS
from tests.drill.ports import free_port
from tests.drill.programs import ProgramFailed
from tests.newcomer.programs import CHECKOUT, run, serving, shell_environment

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wheel")]

BROUGHT = {
    *("asgiref", "channels", "cryptography", "django"),
    *("jsonschema-rs", "orjson", "pydantic"),
}
PROJECT: Final[dict[str, Any]] = tomllib.loads(
    (CHECKOUT / "pyproject.toml").read_text("utf-8")
)
MODULES: Final = {
    **{"daphne": "daphne", "mysql": "MySQLdb", "postgres": "psycopg", "skills": "yaml"},
    **{extra: module for module, extra in EXTRAS.items()},
}
"""What each extra brings that the app or Django imports."""
BY_EXTRAS = {"daphne", "djangorestframework", "channels-redis", "psycopg", "twisted"}

URLS = """\
from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("", include("mcp_app.urls")), path("admin/", admin.site.urls)]
"""
TOOL = """\
from mcp_app import mcp


@mcp.tool(title="Five", read_only=True, open_world=False)
def five() -> str:
    \"\"\"The number five.\"\"\"
    return "five"
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
row = Tool.objects.get(name="wind")
publish = f"/admin/mcp_app/tool/{row.pk}/publish/"
assert "harbour" in client.get(publish).content.decode()
client.post(publish, {"looked_at": row.content_hash, "number": 0})
row.refresh_from_db()
print(row.state.label)
"""
BASIC: Final = "rest_framework.authentication.BasicAuthentication"
ISSUER: Final = {
    **{"path": "mcp_app.authentication.issuer", "issuer": "https://id.example.com"},
    **{"audience": "site", "claim": "sub", "field": "username"},
}
USES: Final = {
    "drf": {"AUTHENTICATION": {"drf": BASIC}},
    "metrics": {"METRICS": {"networks": ["127.0.0.1/32"]}},
    "oauth": {"AUTHENTICATION": {"company": ISSUER}},
    "otel": {"TRACING": {}},
    "redis": {"DOORBELL": "rings"},
}
"""Settings that need an extra."""
LAYERS = """
CHANNEL_LAYERS = {
    "rings": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"},
}
"""
UNTOUCHED = """
import sys

def test_nothing_is_imported():
    assert not {"django", "mcp_app"} & sys.modules.keys()
"""
UVICORN = ["uvicorn", "mysite.asgi:application", "--port="]


class Environment:
    def __init__(self, folder: Path, site: Path, wheel: Path) -> None:
        venv.create(folder / "env")
        self.python = str(folder / "env/bin/python")
        [self.packages] = folder.glob("env/lib/python3*/site-packages")
        self.site = site
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install"]
        options = ["--quiet", "--no-index", "--no-deps", str(wheel)]
        run([*pip, *options], CHECKOUT, shell_environment())
        [self.installed] = distributions(path=[str(self.packages)])

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
        self.append("settings", '\nINSTALLED_APPS += ["mcp_app", "mysite"]\n')
        self.append("mcp", TOOL)
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


def required(requirements: Iterable[Requirement]) -> set[str]:
    everything: set[tuple[str, frozenset[str]]] = set()
    waiting = list(requirements)
    while waiting:
        each = waiting.pop()
        key = canonicalize_name(each.name), frozenset(each.extras)
        if key not in everything:
            everything.add(key)
            waiting += direct(distribution(each.name), *each.extras)
    return {name for name, _ in everything}


def direct(package: Distribution, *extras: str) -> list[Requirement]:
    return [
        each
        for each in map(Requirement, package.requires or ())
        if each.marker is None
        or any(each.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def answer(environment: Environment, command: list[str], tool: str = "five") -> str:
    """Serve by a command, which the port ends, and return what the tool answers."""
    port = free_port()
    whole = [environment.python, "-m", *command]
    whole[-1] += str(port)
    with serving(whole, environment.site, shell_environment(), port) as served:
        return asyncio.run(text_of(tool, f"{served.url}/mcp"))


async def text_of(tool: str, url: str) -> str:
    async with Client(url) as client:
        [block] = (await client.call_tool(tool)).content
        return str(block.model_dump()["text"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    options = ["--no-build-isolation", "--wheel-dir", str(folder), str(CHECKOUT)]
    run([*pip, *options], CHECKOUT, shell_environment())
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Environment:
    made = Environment(wheel.parent, wheel.parent / "site", wheel)
    brought = direct(made.installed)
    assert {canonicalize_name(each.name) for each in brought} == BROUGHT
    everything = required(brought)
    assert everything.isdisjoint(BY_EXTRAS)
    made.link(everything)
    made.start_site()
    made.run("manage.py", "migrate")
    made.run("manage.py", "shell", "-v", "0", "-c", OPEN)
    return made


def test_checks_and_migrations(environment: Environment) -> None:
    assert "no issues" in environment.run("manage.py", "check")
    assert "[X] 0001" in environment.run("manage.py", "showmigrations", "mcp_app")


@pytest.mark.parametrize(
    "command",
    [
        UVICORN,
        ["gunicorn", "mysite.wsgi", "--worker-class=gthread", "--bind=127.0.0.1:"],
    ],
    ids=lambda command: command[0],
)
def test_it_serves(environment: Environment, command: list[str]) -> None:
    environment.link(required([Requirement(command[0])]))
    assert answer(environment, command) == "five"


@pytest.mark.parametrize("extra", PROJECT["project"]["optional-dependencies"])
def test_an_extra(
    environment: Environment, wheel: Path, tmp_path: Path, extra: str
) -> None:
    """Without it a setting that needs it is told so; with it the site serves."""
    pytest.importorskip(MODULES[extra])
    used = f"MCP = {USES.get(extra, {})}{LAYERS}"
    if extra in USES:
        with environment.changed(used), pytest.raises(ProgramFailed) as failed:
            environment.run("manage.py", "check")
        assert f'pip install "django-mcp-app[{extra}]"' in str(failed.value)
    made = Environment(tmp_path, environment.site, wheel)
    made.link(required(direct(made.installed, extra)))
    made.run("-c", f"import {MODULES[extra]}")
    with made.changed(used):
        made.run("manage.py", "check")
    command = ["daphne", *UVICORN[1:]] if extra == "daphne" else UVICORN
    made.link(required([Requirement(command[0])]))
    assert answer(made, command) == "five"


def test_the_page_of_the_package_index(environment: Environment, wheel: Path) -> None:
    """Each link of it leads to a file and a heading of the tag that is released."""
    twine = [sys.executable, "-m", "twine", "check", "--strict", str(wheel)]
    run(twine, CHECKOUT, shell_environment())
    about = environment.installed.metadata
    base = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["base"]
    links = re.findall(r"\]\(([^)\s]+)\)", about["Description"])
    links += [each.split(", ")[1] for each in about.get_all("Project-URL") or ()]
    assert all(each.startswith("https://") for each in links), links
    tag = rf"{re.escape(base)}/(?:raw|blob)/v{about['Version']}/"
    files = re.findall(rf"{tag}([^#\n]+)#?(.*)", "\n".join(links))
    # Homepage, Issues and Source are no files.
    assert len(files) == sum(each.startswith(base) for each in links) - 3 > 50
    for name, anchor in files:
        assert (CHECKOUT / name).is_file(), name
        assert not anchor or anchor in anchors(CHECKOUT / name), anchor


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_the_pytest_plugin(environment: Environment) -> None:
    """It has its fixture in the site, and costs a project without Django nothing."""
    environment.link(required([Requirement("pytest")]))
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
    with environment.changed(setting):
        assert "no issues" in environment.run("manage.py", "check")
        made = environment.run("manage.py", "shell", "-v", "0", "-c", MAKE)
        assert made == "Published\n"
        environment.link(required([Requirement("uvicorn")]))
        assert answer(environment, UVICORN, "wind") == "12.5 m/s"
