"""Which kinds there are, and what is said of those that cannot be used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.test import override_settings

from mcp_app.checks.settings import check_settings
from mcp_app.kinds.function import FunctionKind
from mcp_app.kinds.http.kind import HttpKind
from mcp_app.kinds.query.changes import ChangeKind
from mcp_app.kinds.query.kind import QueryKind
from mcp_app.kinds.registry import (
    OURS,
    is_guarded,
    kind_classes,
    name_of_kind,
    unusable_kinds,
)
from mcp_app.kinds.skill import SkillKind
from mcp_app.kinds.text import TextKind
from mcp_app.kinds.upstream.kind import UpstreamKind
from tests.apart import ROOT
from tests.kinds.stations import Station

PATH = "tests.kinds.stations"
STATION = f"{PATH}.Station"
ONE = f"{PATH}.Everywhere"


def test_ours_are_registered_like_others() -> None:
    with override_settings(MCP={"KINDS": {"station": STATION}}):
        classes = kind_classes()
        assert dict(classes) == {
            "text": TextKind,
            "function": FunctionKind,
            "query": QueryKind,
            "http": HttpKind,
            "upstream": UpstreamKind,
            "skill": SkillKind,
            "change": ChangeKind,
            "station": Station,
        }
        assert [*unusable_kinds()] == []
        assert check_settings(None) == []
        assert name_of_kind("station") == "Ask a weather station"
    assert [*kind_classes()] == [*OURS]
    assert name_of_kind("station") == "station"


@pytest.mark.parametrize(
    ("key", "path", "problem"),
    [
        (
            *("text", STATION),
            " registers {} under the key “text”, but mcp_app.kinds.text.TextKind"
            " already uses this key. Choose another key.",
        ),
        ("two", ONE, " is {}, which is registered as “one” already."),
        (
            *("none", "no.such.module.Kind"),
            " is {}, which cannot be imported: No module named 'no'",
        ),
        ("far", f"{PATH}.SITES", " is {}: it must be a subclass of Kind."),
        ("nameless", f"{PATH}.Nameless", " is {}, which has no `name`."),
        (
            *("Mail it", STATION),
            " has the key 'Mail it'. A key must begin with a letter and have at most"
            " 16 characters of a-z, 0-9 and _.",
        ),
        (
            *("formless", f"{PATH}.Formless"),
            ": {} names the form 'tests.kinds.no_such_module.Form', which cannot be"
            " imported.",
        ),
        (
            *("vague", f"{PATH}.Vague"),
            " is {}: the form 'tests.kinds.station_forms.NoSuchForm' cannot be"
            ' imported: Module "tests.kinds.station_forms" does not define a'
            ' "NoSuchForm" attribute/class',
        ),
        (
            *("listed", f"{PATH}.Listed"),
            " is {}, whose `examples` must be a dict of texts by definition.",
        ),
        (
            *("forms", f"{PATH}.WithForms"),
            " is {}, whose `forms` must be a dict of dotted paths by definition.",
        ),
        (
            *("other", f"{PATH}.OfResources"),
            " is {}: the form 'mcp_app.admin.forms.ResourceForm' must be one for Tool.",
        ),
    ],
)
def test_what_cannot_be_used(key: str, path: str, problem: str) -> None:
    """The check names both, and the other kinds go on."""
    with override_settings(MCP={"KINDS": {"one": ONE, key: path}}):
        [found] = check_settings(None)
        assert found.id == "mcp_app.E009"
        assert found.msg == f'MCP["KINDS"][{key!r}]' + problem.format(repr(path))
        assert {*OURS, "one"} <= kind_classes().keys()


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
from mcp_app.kinds.registry import OURS, kind_classes
found = [*kind_classes()]
assert found == [*OURS, "station"], found
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
        guarded = [each for each in asked if is_guarded(each)]
        assert guarded == ["function", "station", "vanished"]
