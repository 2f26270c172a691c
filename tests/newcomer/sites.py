"""A site of somebody else, made with `django-admin startproject`."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.drill.ports import HOST, free_port
from tests.newcomer.merging import merged
from tests.newcomer.programs import CHECKOUT, Serving, run, serving, shell_environment
from tests.newcomer.readme import Block, blocks

PROJECT: Final = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
EXTRAS: Final = frozenset(PROJECT["project"]["optional-dependencies"])
PASSWORD: Final = "correct horse battery staple"
SUPERUSER: Final = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
FRONT: Final = "Welcome to the shop."

VIEWS: Final = f"""\
from django.http import HttpResponse


def front(request):
    return HttpResponse("{FRONT}")
"""
URLS: Final = """\
from django.contrib import admin
from django.urls import path

from shop import views

urlpatterns = [
    path("", views.front),
    path("admin/", admin.site.urls),
]
"""

INSTALLED: Final = """\
INSTALLED_APPS = [
    # ...
    "shop",
]
"""


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.installed = folder.with_name("installed")
        self.environment = shell_environment(PYTHONPATH=str(self.installed))
        self.printed: dict[str, str] = {}
        """By the line that was typed, what it printed."""

    @classmethod
    def started(cls, beside: Path) -> Site:
        run(["django-admin", "startproject", "mysite"], beside, shell_environment())
        site = cls(beside / "mysite")
        site.installed.mkdir()
        site.type("python manage.py startapp shop")
        site.write("shop/views.py", VIEWS)
        site.write("mysite/urls.py", URLS)
        site.merge("mysite/settings.py", INSTALLED)
        return site

    def copied(self, beside: Path) -> Site:
        shutil.copytree(self.folder, beside / "mysite")
        shutil.copytree(self.installed, beside / "installed", symlinks=True)
        site = Site(beside / "mysite")
        site.printed = {**self.printed}
        return site

    def write(self, file: str, text: str) -> None:
        (self.folder / file).write_text(text, encoding="utf-8")

    def merge(self, file: str, block: str) -> None:
        self.write(file, merged((self.folder / file).read_text("utf-8"), block))

    def type(self, line: str, **environment: str) -> str:
        return run(shlex.split(line), self.folder, {**self.environment, **environment})

    def install(self, line: str) -> None:
        *command, package = shlex.split(line)
        assert command == ["pip", "install"]
        name, _, extras = package.partition("[")
        if name == "../django-mcp-app":
            assert EXTRAS.issuperset(filter(None, extras.rstrip("]").split(",")))
            # The app alone: the checkout's other packages are not installed either.
            link = self.installed / "mcp_app"
            if not link.exists():
                link.symlink_to(CHECKOUT / "mcp_app")
        else:
            assert find_spec(package), f"{package} is not among the requirements."

    def change(self, block: Block) -> None:
        if "new file" in block.said or block.file.endswith("tests.py"):
            self.write(block.file, block.text)
        else:
            self.merge(block.file, block.text)

    def follow(self, heading: str) -> list[str]:
        """Do what README says below a heading; return the last lines of its commands.

        Those are the ones that serve: they do not end by themselves.
        """
        serve: list[str] = []
        for block in blocks(heading):
            if block.language == "python":
                self.change(block)
                continue
            for line in block.text.splitlines():
                if line.startswith("pip "):
                    self.install(line)
                elif " runserver" in line or line.startswith("daphne "):
                    serve.append(line)
                elif line.endswith(" createsuperuser"):
                    self.make_superuser(line)
                else:
                    self.printed[line] = self.type(line)
        return serve

    def make_superuser(self, line: str) -> None:
        answers = ("--no-input", "--username", "admin", "--email", "a@b.test")
        self.type(shlex.join([*shlex.split(line), *answers]), **SUPERUSER)

    @contextmanager
    def serving(self, line: str) -> Iterator[Serving]:
        port = free_port()
        command = shlex.split(line)
        command += [f"{HOST}:{port}"] if "runserver" in command else ["-p", str(port)]
        with serving(command, self.folder, self.environment, port) as served:
            yield served
