"""The API: who may do what, what is refused, and what comes back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Final

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import AsyncClient, Client
from django.urls import include, path
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema
from pytest_django import Settings
from rest_framework.authentication import BaseAuthentication, TokenAuthentication

from mcp_app.checks.settings import check_settings
from mcp_app.models import AccessToken, DefinitionVersion, Server, Stop, Tool
from tests.apart import ROOT, inherited
from tests.auth.apps import Program
from tests.oauth.program import WAYS
from tests.published import published, start, stopped
from tests.publishing.bundle.content import tool

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.api.test_api")]
urlpatterns = [path("api/mcp/", include("mcp_app.api_urls"))]
TOOLS: Final = "/api/mcp/tools/"
JSON: Final = "application/json"
DRF: Final = "rest_framework.authentication"
DEEDS: Final[dict[str, Any]] = {
    "publish/": {"note": "so"},
    "roll-back/": {"version": 1},
}
NEW: Final = {
    "name": "new",
    "description": "Greets people. Use it when somebody says hello.",
    "read_only": True,
    "config": {"content": [{"type": "text", "text": "Hello!"}]},
}
FILE: Final[Any] = {
    "format": "django-mcp-app bundle",
    "version": 2,
    "tools": [{"name": "new", "working": NEW}],
}
NOT_MOUNTED: Final = """
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.drill.settings"
from django.core.management import call_command
django.setup()
call_command("check", stdout=sys.stderr)
print(*(n for n in sys.modules if n.startswith(("rest_framework.views", "drf_spec"))))
sys.modules["rest_framework"] = None
try:
    import mcp_app.api_urls
except Exception as error:
    print(error)
"""


@pytest.fixture
def row() -> Tool:
    row = published(tool(title="One"))
    row.title = "Two"
    row.save()
    return row


def client_of(*rights: str, name: str = "kim", **columns: Any) -> Client:
    columns = {"is_staff": True, **columns}
    user, _ = User.objects.update_or_create(columns, username=name)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    client = Client()
    client.force_login(user)
    return client


def etag(row: Any) -> Any:
    client = client_of(name="boss", is_superuser=True)
    return client.get(f"/api/mcp/{row.kind_of_row}s/{row.pk}/").headers["ETag"]


def do(client: Client, row: Tool, deed: str, match: str, **headers: Any) -> Any:
    send = client.post if deed else client.delete
    headers = {"If-Match": match, **headers}
    return send(f"{TOOLS}{row.pk}/{deed}", DEEDS.get(deed, {}), JSON, headers=headers)


def stored() -> list[Any]:
    rows = [each.objects.values_list() for each in (Tool, Stop, DefinitionVersion)]
    return [*map(list, rows)]


def test_no_credential_of_an_ai_client_lets_in(row: Tool, settings: Settings) -> None:
    match, boss = etag(row), User.objects.get()
    ways = {"AUTHENTICATION": WAYS, "API": {"AUTHENTICATION": []}}
    settings.MCP = {**ways, "PUBLIC_URL": "https://example.org"}
    token = AccessToken.objects.make(user=boss, name="a")[1]
    server = published(Server(slug="shop", access=" ".join(WAYS)))
    boss_client = client_of(is_superuser=True)
    for each in (token, Program(server, boss).sign_in().access):
        for names in ([f"{DRF}.SessionAuthentication"], [f"{DRF}.BasicAuthentication"]):
            settings.MCP = {**ways, "API": {"AUTHENTICATION": names}}
            headers = {"Authorization": f"Bearer {each}"}
            answers = [do(Client(), row, "publish/", match, **headers)]
            answers += [Client().get(TOOLS, headers=headers)]
            # A class of the site may look for it anywhere.
            answers += [boss_client.get(TOOLS, headers={"X-Api-Key": each})]
            assert {answer.status_code for answer in answers} <= {401, 403}


def test_of_two_with_one_etag_one_comes_too_late(row: Tool) -> None:
    client, match = client_of(is_superuser=True), etag(row)
    assert client.post(f"{TOOLS}{row.pk}/publish/", {}, JSON).status_code == 428
    client.handler.enforce_csrf_checks = True
    assert do(client, row, "publish/", match).status_code == 403
    client = client_of(is_superuser=True)
    assert do(client, row, "publish/", f'"x", W/{match}').status_code == 200
    assert do(client, row, "publish/", match).status_code == 412
    # Nothing is left to do, and nothing is written down as done.
    assert do(client, row, "publish/", etag(row)).status_code == 200
    assert LogEntry.objects.count() == 1
    assert DefinitionVersion.objects.of(row).count() == 2


def test_what_is_seen_of_a_row_is_in_its_etag(row: Tool) -> None:
    Server.objects.update(selection=Server.Selection.CHOSEN)
    server = Server.objects.get()
    tags = {etag(row), etag(stopped(row)), etag(server)}
    start(row)
    server.tools.add(row)
    assert len(tags | {etag(published(row)), etag(server)}) == 5


class ChunkedClient(AsyncClient):
    """Sends a body without its length, as HTTP/1.1 and HTTP/2 allow."""

    async def request(self, **request: Any) -> Any:
        lengths = {b"content-length"}
        headers = [each for each in request["headers"] if each[0] not in lengths]
        return await super().request(**{**request, "headers": headers})


def test_a_body_that_says_no_length_is_read(row: Tool) -> None:
    match, client = etag(row), ChunkedClient()
    client.force_login(User.objects.get())
    send = async_to_sync(client.post)
    address, headers = f"{TOOLS}{row.pk}/publish/", {"If-Match": match}
    assert send(address, {"whom": ""}, JSON, headers=headers).status_code == 400
    assert send(address, {"note": "so"}, JSON, headers=headers).status_code == 200
    assert DefinitionVersion.objects.of(row).get(number=2).note == "so"
    assert send(address, {"note": ""}, headers=headers).status_code == 415


BODIES: Final = {"notes": ""}, ["a"], {"note": "\0"}, '{"note": "\\ud800"}', '{"'
BAD: Final[list[tuple[str, Any, int]]] = [
    *((each, None, 400) for each in ("?kind=x", "?q=%00", "?after=x", "?q=a&after=")),
    *((f"{each}/", None, 404) for each in ("9" * 30, "abc", "a%2Fb", "%00", "../no")),
    *(("ID/publish/", each, 400) for each in BODIES),
    ("ID/roll-back/", {"version": 10**30}, 404),
    ("ID/roll-back/", {"version": True}, 400),
]


@pytest.mark.parametrize(("address", "body", "status"), BAD)
def test_bad_input_is_refused_in_json(
    row: Tool, address: str, body: Any, status: int
) -> None:
    client, address = client_of(is_superuser=True), address.replace("ID", str(row.pk))
    headers, before = {"If-Match": etag(row), "Accept": "text/html"}, stored()
    send: Any = client.get if body is None else client.post
    response = send(TOOLS + address, body, JSON, headers=headers)
    assert response.status_code == status
    assert [*response.json()] == ["detail", "code", "problems"]
    assert stored() == before


def test_what_must_be_fixed_is_told(row: Tool) -> None:
    Tool.objects.filter(pk=row.pk).update(description="")
    response = do(client_of(is_superuser=True), row, "publish/", etag(row))
    assert response.status_code == 422
    assert response.json()["problems"][0]["field"] == "description"


def test_a_long_list_takes_few_statements(django_assert_max_num_queries: Any) -> None:
    for index in range(300):
        published(tool(name=f"tool_{index:03}"))
    client = client_of("view_tool")
    with django_assert_max_num_queries(8):
        body = client.get(f"{TOOLS}?limit=300").json()
    assert (len(body["results"]), body["next"]) == (300, None)
    first = client.get(f"{TOOLS}?limit=2&state=published&q=tool_1").json()
    rest = client.get(f"{TOOLS}?after={first['next']}&q=tool_1").json()
    names = [each["key"] for each in (*first["results"], *rest["results"])]
    assert names == [f"tool_{index}" for index in range(100, 200)]
    assert len(client.get(f"{TOOLS}?key=tool_007").json()["results"]) == 1


def test_the_document_is_valid_and_says_what_comes_back(row: Tool) -> None:
    client = client_of(is_superuser=True)
    document = client.get("/api/mcp/schema/").json()
    validate_schema(document)
    site = SchemaGenerator(urlconf="tests.api.test_api").get_schema(None, public=True)
    assert site["paths"] == {}
    operations = [each for path in document["paths"].values() for each in path.values()]
    assert len(operations) == len({each["operationId"] for each in operations}) == 48
    whole = document["components"]["schemas"]["WholeDefinition"]
    assert {*whole["properties"]} == {*client.get(f"{TOOLS}{row.pk}/").json()}


def test_a_site_without_it_imports_nothing_of_it() -> None:
    program = [sys.executable, "-c", NOT_MOUNTED]
    done = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True)
    end = 'Install it: pip install "django-mcp-app[drf]"'
    assert [each[-len(end) :] for each in done.stdout.splitlines()] == ["", end]


Door = type("Door", (BaseAuthentication,), {"authenticate": lambda *_: AccessToken})
Keys = type("Keys", (TokenAuthentication,), {})
UNFIT: Final = {
    "tests.api.test_api.Keys": "needs 'rest_framework.authtoken'",
    f"{DRF}.TokenAuthentication": "lets in AI clients",
    "tests.api.test_api.Door": "may take the tokens",
    "mcp_app.authentication.oauth": "is no authentication class",
    "none.Such": "cannot be imported",
}


@pytest.mark.parametrize("path", UNFIT)
def test_a_way_in_that_is_not_for_staff_is_told_and_lets_nobody_in(
    settings: Settings, path: str
) -> None:
    settings.MCP = {"AUTHENTICATION": {"a": "tests.auth.drf_classes.BearerToken"}}
    settings.MCP["API"] = {"AUTHENTICATION": [path], "THROTTLE": []}
    told = [e.msg for e in check_settings(None) if e.id == "mcp_app.E025"]
    assert ["no option" in told[0], UNFIT[path] in told[1]] == [True, True]
    assert client_of(is_superuser=True).get(TOOLS).status_code in (401, 403)


def test_what_a_site_says_to_its_own_api_changes_nothing() -> None:
    program = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    program += ["--ds", "tests.api.hostile_settings", "tests/api/test_rights.py"]
    done = subprocess.run(
        program, check=False, cwd=ROOT, env=inherited(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "14 passed" in done.stdout
