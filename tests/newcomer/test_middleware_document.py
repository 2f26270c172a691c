"""The recipes of docs/middleware.md, in a project with tenants and a history."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.drill.databases import POSTGRES, database
from tests.newcomer.programs import run
from tests.newcomer.readme import blocks
from tests.newcomer.test_other_projects import Project, pytestmark
from tests.newcomer.test_startproject import called

__all__ = ["pytestmark"]

RECIPES: Final = (
    "Tenant by host",
    "The user of django-simple-history",
    "The language of the request",
)
SETTINGS: Final = """
from mysite.started import *

ALLOWED_HOSTS = [".test"]
SHARED_APPS = ["django_tenants", "customers", "mcp_app", *INSTALLED_APPS]
TENANT_APPS = ["shop"]
INSTALLED_APPS = [*SHARED_APPS, "simple_history", *TENANT_APPS]
MIDDLEWARE = ["django_tenants.middleware.main.TenantMainMiddleware", *MIDDLEWARE]
TENANT_MODEL, TENANT_DOMAIN_MODEL = "customers.Client", "customers.Domain"
DATABASE_ROUTERS = ["django_tenants.routers.TenantSyncRouter"]
DATABASES = {"default": environ.Env.db_url_config("%s")}
DATABASES["default"]["ENGINE"] = "django_tenants.postgresql_backend"
"""
CUSTOMERS: Final = """
from django_tenants.models import DomainMixin, TenantMixin
class Client(TenantMixin): pass
class Domain(DomainMixin): pass
"""
SHOP: Final = """
from django.db import models
from simple_history.models import HistoricalRecords
class Note(models.Model):
    text = models.CharField(max_length=20)
    history = HistoricalRecords()
"""
TOOL: Final = """
from django.utils.translation import get_language
from mcp_app import mcp
from shop.models import Note

@mcp.tool
def add(a: int, b: int) -> list[str]:
    row = Note.objects.create(text=f"{get_language()} {a + b}")
    texts = Note.objects.order_by("pk").values_list("text", flat=True)
    return [row.history.get().history_user.username, *texts]
"""
URLS: Final = """
from django.urls import include, path
urlpatterns = [path("", include("mcp_app.urls"))]
"""
MAKE: Final = """
from customers.models import Client, Domain
for name in ("public", "one", "two"):
    client = Client.objects.create(schema_name=name)
    Domain.objects.create(domain=f"{name}.test", tenant=client)
"""


async def test_the_recipes(tmp_path: Path) -> None:
    site = Project(tmp_path / "mysite", "tenants")
    run(["django-admin", "startproject", "mysite"], tmp_path, site.environment)
    for app in ("shop", "customers"):
        site.type(f"python manage.py startapp {app}")
    site.install("pip install ../django-mcp-app")
    (site.folder / "mysite/settings.py").rename(site.folder / "mysite/started.py")
    [settings] = blocks("Your site's middleware")
    with database("postgresql") as name:
        own = SETTINGS % f"{POSTGRES}/{name}"
        for file, text in (
            ("mysite/settings.py", f"import environ\n{own}{settings.text}"),
            ("mysite/calls.py", "\n".join(blocks(each)[0].text for each in RECIPES)),
            ("mysite/urls.py", URLS),
            ("customers/models.py", CUSTOMERS),
            ("shop/models.py", SHOP),
            ("shop/mcp.py", TOOL),
        ):
            site.write(file, text)
        site.type("python manage.py makemigrations customers shop")
        site.type("python manage.py migrate_schemas --shared")
        site.make_superuser("python manage.py createsuperuser")
        site.type(f"python manage.py shell -v 0 -c '{MAKE}'")
        token = site.type("python manage.py mcp_token new admin x --change").strip()
        given = {"Authorization": f"Bearer {token}"}
        with site.serving("python manage.py runserver --noreload") as served:
            for host, language, texts in (
                ("one", "de", ["de 5"]),
                ("two", "fr", ["fr 5"]),
                ("one", "en", ["de 5", "en 5"]),
            ):
                headers = {"Host": f"{host}.test", "Accept-Language": language}
                answer = await called(served.url, "auto", **given, **headers)
                assert answer == {"result": ["admin", *texts]}
