"""README.md, done line by line in a project of Wagtail and in one of django-oscar.

`make projects` makes their environments; each project is new for its test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final

import httpx
import pytest

from tests.newcomer.programs import CHECKOUT, run
from tests.newcomer.readme import blocks
from tests.newcomer.sites import INSTALLED, Site
from tests.newcomer.test_startproject import ADD, NEW_TOKEN, STREAM, adds, initialize

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings(
        # The SDK calls the members of the older era deprecated.
        "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
    ),
]


OSCAR_SETTINGS: Final = """
from oscar.defaults import *

DEBUG = True
SECRET_KEY = "of this test alone, and nothing that anybody should know"
ALLOWED_HOSTS = []
ROOT_URLCONF = "urls"
WSGI_APPLICATION = "wsgi.application"
SITE_ID = 1
USE_TZ = True
LANGUAGES = [("en", "English"), ("de", "German")]
STATIC_URL = "/static/"
MEDIA_URL = "/media/"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": "db.sqlite3",
        "ATOMIC_REQUESTS": True,
    }
}
DJANGO = ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
OSCAR = (
    *("analytics", "checkout", "address", "shipping", "catalogue", "communication"),
    *("partner", "basket", "payment", "offer", "order", "customer", "search"),
    *("voucher", "wishlists", "dashboard"),
)
DASHBOARD = (
    *("reports", "users", "orders", "catalogue", "offers", "partners", "pages"),
    *("ranges", "reviews", "vouchers", "communications", "shipping"),
)
INSTALLED_APPS = [
    *(f"django.contrib.{each}" for each in DJANGO),
    "django.contrib.sites",
    "django.contrib.flatpages",
    "oscar.config.Shop",
    *(f"oscar.apps.{each}.apps.{each.title()}Config" for each in OSCAR),
    "oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig",
    *(
        f"oscar.apps.dashboard.{each}.apps.{each.title()}DashboardConfig"
        for each in DASHBOARD
    ),
    "widget_tweaks",
    "haystack",
    "treebeard",
    "django_tables2",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "oscar.apps.customer.auth_backends.EmailBackend",
    "django.contrib.auth.backends.ModelBackend",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
                "oscar.apps.search.context_processors.search_form",
                "oscar.apps.checkout.context_processors.checkout",
                "oscar.core.context_processors.metadata",
            ],
        },
    },
]
HAYSTACK_CONNECTIONS = {
    "default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}
}
"""
OSCAR_URLS: Final = """
from django.apps import apps
from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/", admin.site.urls),
]
urlpatterns += i18n_patterns(path("", include(apps.get_app_config("oscar").urls[0])))
"""
OSCAR_WSGI: Final = """
import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
application = get_wsgi_application()
"""
OSCAR_MANAGE: Final = """
import os
import sys

from django.core.management import execute_from_command_line

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
execute_from_command_line(sys.argv)
"""


class Project(Site):
    PLACES: ClassVar[Mapping[str, str]] = {}

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        programs = (CHECKOUT / ".projects") / name / "bin"
        if not programs.exists():
            pytest.skip(f"{name} is missing: `make projects` installs it.")
        path = f"{programs}:{self.environment['PATH']}"
        self.environment = {**self.environment, "PATH": path}
        self.installed.mkdir()

    def write(self, file: str, text: str) -> None:
        super().write(self.PLACES.get(file, file), text)

    def merge(self, file: str, block: str) -> None:
        super().merge(self.PLACES.get(file, file), block)

    def shop(self) -> None:
        self.type("python manage.py startapp shop")
        self.merge("mysite/settings.py", INSTALLED)


class Wagtail(Project):
    PLACES = {"mysite/settings.py": "mysite/settings/base.py"}

    @classmethod
    def made(cls, beside: Path) -> Wagtail:
        site = cls(beside / "mysite", "wagtail")
        run(["wagtail", "start", "mysite"], beside, site.environment)
        site.shop()
        return site


class Oscar(Project):
    """A project after Oscar's documentation: settings in the top level, WSGI alone."""

    PLACES = {
        "mysite/settings.py": "settings.py",
        "mysite/urls.py": "urls.py",
        "mysite/asgi.py": "asgi.py",
    }

    @classmethod
    def made(cls, beside: Path) -> Oscar:
        site = cls(beside / "mysite", "oscar")
        site.folder.mkdir()
        files = {
            "settings.py": OSCAR_SETTINGS,
            "urls.py": OSCAR_URLS,
            "wsgi.py": OSCAR_WSGI,
            "manage.py": OSCAR_MANAGE,
        }
        for name, text in files.items():
            site.write(name, text)
        site.shop()
        return site


@pytest.mark.parametrize("kind", [Wagtail, Oscar])
async def test_the_first_answer(kind: type[Wagtail | Oscar], tmp_path: Path) -> None:
    site = kind.made(tmp_path)
    assert site.follow(ADD) == ["python manage.py runserver"]
    token = site.printed[NEW_TOKEN].split()[-1]
    with site.serving("python manage.py runserver --noreload") as served:
        assert initialize(served.url).status_code == 401
        assert httpx.get(served.url, follow_redirects=True).status_code == 200
        await adds(served.url, Authorization=f"Bearer {token}")


@pytest.mark.parametrize("kind", [Wagtail, Oscar])
async def test_streams_with_the_whole_asgi_file(
    kind: type[Wagtail | Oscar], tmp_path: Path
) -> None:
    site = kind.made(tmp_path)
    site.follow(ADD)
    token = site.printed[NEW_TOKEN].split()[-1]
    for block in blocks(STREAM):
        if block.language == "python":
            text = block.text
            if kind is Oscar:
                text = text.replace("mysite.asgi", "asgi").replace("mysite.", "")
            put = site.write if "asgi.py" in block.file else site.merge
            put(block.file, text)
    with site.serving("python manage.py runserver --noreload") as served:
        await adds(served.url, Authorization=f"Bearer {token}")
