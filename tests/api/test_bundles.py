"""Definitions in Git over REST: the same bytes, all or nothing, nobody's work lost."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext

from mcp_app.models import DefinitionVersion, Server, Stop, Tool
from tests.api.test_api import FILE, JSON, client_of, do, etag, stored
from tests.published import published
from tests.publishing.bundle.content import fill, tool

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.api.test_api")]
BUNDLE: Final = "/api/mcp/bundle/"
GIT: Final = f"{BUNDLE}?publish=working"


@pytest.fixture
def boss() -> Client:
    return client_of(is_superuser=True, name="boss")


def put(client: Client, body: Any, address: str = GIT, **headers: str) -> Any:
    return client.put(address, body, JSON, headers=headers)


def test_fifty_definitions_come_back_as_the_same_bytes(boss: Client) -> None:
    for index in range(50):
        tool(name=f"tool_{index:02}")
    file = boss.get(f"{BUNDLE}?published=0").content
    Tool.objects.all().delete()
    report = put(boss, file).json()
    assert report["changed"] == 50
    assert {each["outcome"] for each in report["entries"]} == {"new", "the same"}
    assert boss.get(f"{BUNDLE}?published=0").content == file
    before = stored()
    with CaptureQueriesContext(connection) as queries:
        assert put(boss, file).json()["changed"] == 0
    assert len(queries) <= 15
    assert stored() == before
    broken = file.replace(b"tool_49", b"tool 49")
    assert put(boss, broken.replace(b"Tells", b"Says")).status_code == 422
    assert stored() == before


def test_work_that_staff_saved_is_overwritten_after_a_look_alone(boss: Client) -> None:
    assert put(boss, FILE).json()["changed"] == 1
    row, kim = Tool.objects.get(), User.objects.create(username="kim")
    row.title, row.updated_by = "Hers", kim
    row.save()
    before, check = stored(), f"{GIT}&check=1"
    refused = put(boss, FILE)
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert "kim, " in refused.json()["problems"][0]
    looked = put(boss, FILE, check)
    entry = looked.json()["entries"][0]
    assert (entry["outcome"], stored() == before) == ("conflict", True)
    assert any("kim, " in line for line in entry["why"])
    assert put(boss, FILE, **{"If-Match": '"foreign"'}).status_code == 412
    match = {"If-Match": f'"x", W/{looked.headers["ETag"]}'}
    assert put(boss, FILE, f"{BUNDLE}?publish=1", **match).status_code == 412
    assert put(boss, FILE, **match).status_code == 200
    assert Tool.objects.get().title == ""
    assert put(boss, FILE, **match).status_code == 412


def test_a_file_opens_no_server_that_staff_closed(boss: Client) -> None:
    Server.objects.update(access="public")
    file = boss.get(f"{BUNDLE}?published=0").content
    Server.objects.update(access="token")
    refused = put(boss, file).json()
    assert "would change who may come in" in refused["problems"][0]
    assert Server.objects.get().access == "token"


def test_a_part_of_the_site_is_read_by_name(boss: Client) -> None:
    fill()
    names = "definition=tool:hours&definition=resource:shop://logo"
    file = boss.get(f"{BUNDLE}?{names}").json()
    assert [each["name"] for each in file["tools"]] == ["hours"]
    assert [each["uri"] for each in file["resources"]] == ["shop://logo"]
    file = boss.get(f"{BUNDLE}?server=shop").json()
    assert [each["slug"] for each in file["servers"]] == ["shop"]
    for name in ("definition=everything", "definition=", "server=none"):
        assert boss.get(f"{BUNDLE}?{name}").status_code == 404
    refused = boss.get(f"{BUNDLE}?definition=tool:hour")
    assert "Similar names: hours" in refused.json()["detail"]


NEWER: Final = {**FILE, "version": 99}
BAD: Final[list[tuple[str, Any, int]]] = [
    *((BUNDLE, each, 422) for each in ([FILE], "", "{", NEWER, {**FILE, "x": 1})),
    (BUNDLE, b" " * 5_000_000 + b"{", 422),
    (BUNDLE, b'{"a": "\\ud800"}', 422),
    *((f"{BUNDLE}?{each}", FILE, 400) for each in ("publish=yes", "check=x", "a=1")),
]


@pytest.mark.parametrize(("address", "body", "status"), BAD)
def test_a_file_that_is_wrong_changes_nothing(
    boss: Client, address: str, body: Any, status: int
) -> None:
    before = stored()
    response = put(boss, body, address)
    assert response.status_code == status
    assert [*response.json()] == ["detail", "code", "problems"]
    assert stored() == before


def test_what_is_stopped_over_rest_is_told(boss: Client) -> None:
    published(tool())
    address = "/api/mcp/stops/"
    for what in ("tool:hour", "tool", "", "server:x"):
        assert boss.post(address, {"what": what}, JSON).status_code == 404
    bad: list[Any] = [{"what": "changes", "running": "x"}, {"what": 7}, {"whom": "x"}]
    assert {boss.post(address, each, JSON).status_code for each in bad} == {400}
    assert not Stop.objects.exists()
    wish = {"what": "tool:hours", "reason": "Alarm", "running": "finish"}
    made = boss.post(address, wish, JSON).json()
    assert boss.get(address).json() == {"results": [made]}
    assert (made["what"], made["name"], made["by"]) == ("tool:hours", "hours", "boss")
    assert boss.delete(f"{address}{made['id']}/").status_code == 204
    assert boss.delete(f"{address}{made['id']}/").status_code == 404
    assert not Stop.objects.on().exists()


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_two_files_at_once_are_imported_or_to_be_sent_again() -> None:
    clients = [client_of(is_superuser=True, name=f"kim{i}") for i in range(2)]
    text = json.dumps(FILE)

    def send(number: int) -> int:
        try:
            file = text.replace('"new"', f'"new_{number}"')
            return int(put(clients[number % 2], file).status_code)
        finally:
            connections.close_all()

    for start in range(0, 10, 2):
        with ThreadPoolExecutor(2) as pool:
            answers = [*pool.map(send, (start, start + 1))]
        assert 200 in answers
        assert {*answers} <= {200, 503}


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("rounds", "people"), [(5, 2), pytest.param(30, 4, marks=pytest.mark.long)]
)
def test_of_people_with_one_etag_one_publishes(rounds: int, people: int) -> None:
    row = published(tool())
    clients = [client_of(is_superuser=True, name=f"kim{i}") for i in range(people)]

    def publish(client: Client) -> int:
        try:
            return int(do(client, row, "publish/", match).status_code)
        finally:
            connections.close_all()

    for number in range(rounds):
        row = Tool.objects.get()
        row.title = f"Hours {number}"
        row.save()
        match = etag(row)
        with ThreadPoolExecutor(people) as pool:
            answers = [*pool.map(publish, clients)]
        assert answers.count(200) == 1
        assert {*answers} <= {200, 412, 503}
    assert DefinitionVersion.objects.of(row).count() == rounds + 1
