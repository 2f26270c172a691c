"""A document as drf-spectacular writes it; the other version is read in Chromium."""

from __future__ import annotations

import sys
from pathlib import Path

from mcp_app.conf import MIB
from mcp_app.egress.sites import Site
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import read_document
from mcp_app.protocol import schemas
from tests.newcomer.programs import CHECKOUT, run, shell_environment

SITE = Site(
    key="helpdesk",
    title="Help desk",
    scheme="https",
    host="help.example.com",
    port=443,
    prefix="",
)


def test_openapi_3_1(tmp_path: Path) -> None:
    environment = shell_environment(
        DJANGO_SETTINGS_MODULE="tests.helpdesk.settings",
        HELPDESK_DATABASE=str(tmp_path / "helpdesk.sqlite3"),
        HELPDESK_KEY="any",
        HELPDESK_RELEASE=str(tmp_path / "released"),
        HELPDESK_OPENAPI="3.1.0",
    )
    # As the program is called, so that the path has the tests.
    text = run([sys.executable, "-m", "django", "spectacular"], CHECKOUT, environment)
    document = read_document(text.encode(), MIB)
    assert document["openapi"] == "3.1.0"
    offers = {each.name: each for each in offers_of(document, SITE, MIB)}
    assert not any(each.bar for each in offers.values())
    offer = offers["tickets_create"]
    assert offer.config["path"] == "/api/tickets/"
    assert offer.config["body"] == {
        "json": {"subject": "{{subject}}", "priority": "{{priority}}"}
    }
    schema = schemas.compile(offer.input_schema)
    assert not schema.violations({"subject": "The cake", "priority": "high"})
    assert schema.violations({"subject": "The cake", "priority": "none"})
