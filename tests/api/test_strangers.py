"""Programs that others wrote, which know the API by its document alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as drawing
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode, openapi
from schemathesis.checks import CHECKS

from mcp_app.models import Tool
from tests.api.test_api import FILE, client_of
from tests.publishing.bundle.content import fill

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.api.test_api")]
TOKEN: Final = "a" * 32
UNFIT: Final = {
    "positive_data_acceptance",
    "missing_required_header",
    "unsupported_method",
}
"""Checks that take our refusals for faults, as 412 and 428."""
LONG: Final = [(True, 100), (False, 20)]


def site_for(client: Client) -> Any:
    """Return the WSGI application for whoever this client has logged in."""
    cookies = f"csrftoken={TOKEN}; sessionid={client.cookies['sessionid'].value}"
    login = {"HTTP_COOKIE": cookies, "HTTP_X_CSRFTOKEN": TOKEN}
    site = get_wsgi_application()
    return lambda environ, start: site({**environ, **login}, start)


@pytest.mark.parametrize(
    ("is_superuser", "examples"),
    [(True, 5), *(pytest.param(*each, marks=pytest.mark.long) for each in LONG)],
)
def test_nothing_that_a_program_draws_breaks_it(
    monkeypatch: pytest.MonkeyPatch, is_superuser: bool, examples: int
) -> None:
    fill()
    monkeypatch.setattr(connection, "close", lambda: None)
    client = client_of(is_superuser=is_superuser)
    document = client.get("/api/mcp/schema/").json()
    for operations in document["paths"].values():
        for operation in operations.values():
            # The test logs in, and asks mostly for rows that are there.
            del operation["security"]
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "id":
                    parameter["schema"]["enum"] = ["1", "2", "99"]
    schema = openapi.from_dict(document)
    schema.app = site_for(client)
    names = [name for name in CHECKS.get_all_names() if name not in UNFIT]
    checks: Any = CHECKS.get_by_names(names)
    answers: Counter[int] = Counter()

    def ask(case: Case[Any]) -> None:
        response = case.call()
        answers[response.status_code] += 1
        case.validate_response(response, checks=checks)

    result: Any
    for result in schema.get_all_operations():
        for mode in GenerationMode:
            cases = result.ok().as_strategy(generation_mode=mode)
            drawn_often: Any = drawing(
                max_examples=examples,
                deadline=None,
                database=None,
                suppress_health_check=[*HealthCheck],
            )
            draw: Any = given(cases)
            ask_often = drawn_often(draw(ask))
            with suppress(Unsatisfiable):
                # An operation without parameters takes nothing that is wrong.
                ask_often()
    # All staff may read the document.
    expected = {200, 404} if is_superuser else {200, 403}
    assert {*answers} >= expected
    assert is_superuser or {*answers} <= {*expected, 400, 404}


class GeneratedClient:
    """What openapi-python-client makes of the document; each deed sends the ETag."""

    def __init__(self, boss: Client, folder: Path) -> None:
        (folder / "api.json").write_bytes(boss.get("/api/mcp/schema/").content)
        command = str(Path(sys.executable).with_name("openapi-python-client"))
        options = (
            "generate",
            "--path",
            "api.json",
            "--meta",
            "none",
            "--output-path",
            "generated",
        )
        subprocess.run([command, *options], cwd=folder, check=True, capture_output=True)
        arguments = {"transport": httpx.WSGITransport(site_for(boss))}
        module: Any = import_module("generated")
        self.client = module.Client("http://testserver/api/mcp", httpx_args=arguments)
        self.models: Any = import_module("generated.models")

    def do(
        self, kind: str, deed: str, *keys: str, body: Any = None, **values: Any
    ) -> Any:
        module = import_module(f"generated.api.{kind}.{kind}_{deed}")
        if body is not None:
            name = f"{kind}_{deed}_body".title().replace("_", "")
            values["body"] = getattr(self.models, name).from_dict(body)
        if kind == "tools" and deed != "retrieve":
            values["if_match"] = self.do(kind, "retrieve", *keys).etag
        response = module.sync_detailed(*keys, client=self.client, **values)
        assert response.status_code < 300, response.content
        return response.parsed


def test_a_client_that_is_generated_does_all_deeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection, "close", lambda: None)
    monkeypatch.syspath_prepend(tmp_path)
    generated = GeneratedClient(client_of(is_superuser=True), tmp_path)
    do, working = generated.do, generated.models.BundleUpdatePublish.WORKING

    def state() -> tuple[str, int | None]:
        row = do("tools", "retrieve", key)
        return row.state, row.published

    assert do("bundle", "update", body=FILE, publish=working).changed == 1
    key = str(Tool.objects.get().pk)
    assert state() == ("published", 1)
    stop = do("stops", "create", body={"what": "tool:new", "reason": "Alarm 7"})
    assert (state(), stop.reason, stop.by) == (("stopped", 1), "Alarm 7", "kim")
    do("stops", "destroy", str(stop.id))
    file = json.loads(json.dumps(FILE).replace("Greets", "Says hello to"))
    assert do("bundle", "update", body=file).changed == 1
    assert state() == ("changed", 1)
    do("tools", "publish", key, body={"note": "Kinder"})
    assert state() == ("published", 2)
    do("tools", "roll_back", key, body={"version": 1})
    do("tools", "unpublish", key)
    assert state() == ("unpublished", None)
    do("tools", "destroy", key)
    assert not Tool.objects.exists()
