"""Which kinds there are, and what is said of those that cannot be used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.test import override_settings

from mcp_app.checks.settings import check_settings
from mcp_app.kinds.function import FunctionKind
from mcp_app.kinds.http.kind import HttpKind
from mcp_app.kinds.query.kind import QueryKind
from mcp_app.kinds.registry import (
    OURS,
    is_guarded,
    kind_classes,
    name_of_kind,
    unusable_kinds,
)
from mcp_app.kinds.text import TextKind
from tests.apart import ROOT
from tests.kinds.stations import Station

PATH = "tests.kinds.stations"
STATION = f"{PATH}.Station"


def test_ours_are_registered_like_others() -> None:
    with override_settings(MCP={"KINDS": {"station": STATION}}):
        classes = kind_classes()
        assert dict(classes) == {
            "text": TextKind,
            "function": FunctionKind,
            "query": QueryKind,
            "http": HttpKind,
            "station": Station,
        }
        assert [*unusable_kinds()] == []
        assert check_settings(None) == []
        assert name_of_kind("station") == "Ask a weather station"
    assert [*kind_classes()] == [*OURS]
    assert name_of_kind("station") == "station"


@pytest.mark.parametrize(
    ("kinds", "sentences"),
    [
        (
            {"text": STATION},
            [
                f"MCP[\"KINDS\"]['text'] registers '{STATION}' under the key “text”,"
                " but mcp_app.kinds.text.TextKind already uses this key. Choose another"
                " key."
            ],
        ),
        (
            {"one": STATION, "two": STATION},
            [
                f"MCP[\"KINDS\"]['two'] is '{STATION}', which is registered as “one”"
                " already."
            ],
        ),
        (
            {"none": "no.such.module.Kind"},
            [
                "MCP[\"KINDS\"]['none'] is 'no.such.module.Kind', which cannot be"
                " imported: No module named 'no'"
            ],
        ),
        (
            {"far": f"{PATH}.SITES"},
            [
                f"MCP[\"KINDS\"]['far'] is '{PATH}.SITES': it must be a subclass of"
                " Kind."
            ],
        ),
        (
            {"nameless": f"{PATH}.Nameless"},
            [f"MCP[\"KINDS\"]['nameless'] is '{PATH}.Nameless', which has no `name`."],
        ),
        (
            {"Mail it": STATION},
            [
                "MCP[\"KINDS\"]['Mail it'] has the key 'Mail it'. A key must begin with"
                " a letter and have at most 16 characters of a-z, 0-9 and _."
            ],
        ),
        (
            {"formless": f"{PATH}.Formless"},
            [
                f"MCP[\"KINDS\"]['formless']: '{PATH}.Formless' names the form"
                " 'tests.kinds.no_such_module.Form', which cannot be imported."
            ],
        ),
        (
            {"vague": f"{PATH}.Vague"},
            [
                f"MCP[\"KINDS\"]['vague'] is '{PATH}.Vague': the form"
                " 'tests.kinds.station_forms.NoSuchForm' cannot be imported:"
                ' Module "tests.kinds.station_forms" does not define a "NoSuchForm"'
                " attribute/class"
            ],
        ),
        (
            {"listed": f"{PATH}.Listed"},
            [
                f"MCP[\"KINDS\"]['listed'] is '{PATH}.Listed', whose `examples` must be"
                " a dict of texts by definition."
            ],
        ),
        (
            {"forms": f"{PATH}.WithForms"},
            [
                f"MCP[\"KINDS\"]['forms'] is '{PATH}.WithForms', whose `forms` must be"
                " a dict of dotted paths by definition."
            ],
        ),
        (
            {"other": f"{PATH}.OfResources"},
            [
                f"MCP[\"KINDS\"]['other'] is '{PATH}.OfResources': the form"
                " 'mcp_app.admin.forms.ResourceForm' must be one for Tool."
            ],
        ),
    ],
)
def test_what_cannot_be_used(kinds: dict[str, str], sentences: list[str]) -> None:
    """The check names both, and the other kinds go on."""
    with override_settings(MCP={"KINDS": {**kinds, "good": f"{PATH}.Everywhere"}}):
        found = check_settings(None)
        assert [(each.id, each.msg) for each in found] == [
            ("mcp_app.E009", sentence) for sentence in sentences
        ]
        assert {*OURS, "good"} <= kind_classes().keys()


@pytest.mark.parametrize(
    "value", [{"station": Station}, None, [STATION], STATION, {1: STATION}]
)
def test_a_value_that_is_no_path(value: object) -> None:
    with override_settings(MCP={"KINDS": value}):
        [error] = check_settings(None)
        assert [*kind_classes()] == [*OURS]
    assert error.id == "mcp_app.E002"
    assert error.msg.startswith('MCP["KINDS"] is ')


def test_a_schema_that_is_none() -> None:
    with override_settings(MCP={"KINDS": {"some": f"{PATH}.Schemaless"}}):
        [error] = check_settings(None)
    assert "whose `schema` is not a JSON Schema" in error.msg


WITHOUT_THE_ADMIN = """
import sys
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="a key for a moment",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "mcp_app"],
    MCP={"KINDS": {"station": "tests.kinds.stations.Station"}},
)
django.setup()
from mcp_app.kinds.registry import kind_classes
found = [*kind_classes()]
assert found == ["text", "function", "query", "http", "station"], found
assert "httpcore2" not in sys.modules
assert not [each for each in sys.modules if each.startswith("mcp_app.admin")]
"""


def test_a_site_without_the_admin_has_the_kinds_and_imports_no_form() -> None:
    program = [sys.executable, "-c", WITHOUT_THE_ADMIN]
    subprocess.run(program, cwd=ROOT, check=True, timeout=60)


def test_whose_configs_need_a_right() -> None:
    kinds = {"station": STATION, "open": f"{PATH}.Open"}
    with override_settings(MCP={"KINDS": kinds}):
        asked = ("text", "function", "station", "open", "vanished")
        assert [is_guarded(each) for each in asked] == [False, True, True, False, True]
