"""System checks of the settings, and of definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from channels.layers import channel_layers
from django.conf import LazySettings
from django.core import checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db.models import Model
from django.test import override_settings
from django.utils import translation
from django.utils.translation import gettext_lazy
from pydantic import Field

from mcp_app import checks as checks_of_app
from mcp_app.catalog.registry import Registry
from mcp_app.checks import (
    PER_RULE,
    TAG,
    check_access,
    check_definitions,
    check_deployment,
    check_settings,
)
from mcp_app.models import Server, Tool
from tests.drill.models import Ledger
from tests.models.missing import ELSEWHERE, missing
from tests.published import published


def ids(given: Any) -> list[str | None]:
    with override_settings(MCP=given):
        return [each.id for each in check_settings(None)]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, []),
        ({"TREADS": 1}, ["mcp_app.W001"]),
        ([], ["mcp_app.E001"]),
        ({"LIMITS": "of"}, ["mcp_app.E001"]),
        ({"THREADS": "8", "TREADS": 1}, ["mcp_app.W001", "mcp_app.E002"]),
        ({"AROUND": ["tests.server.arounds.noting"]}, []),
        ({"AROUND": ["tests.server.arounds.unheard_of"]}, ["mcp_app.E003"]),
        (
            {"AUTHENTICATION": {"a": "no.such.module", "b": "undotted"}},
            ["mcp_app.E003", "mcp_app.E003"],
        ),
        ({"AROUND": ["tests.drill.running.ROOT"]}, ["mcp_app.E003"]),
        (
            {
                "AUTHENTICATION": {
                    "class": "rest_framework.authentication.BasicAuthentication",
                    "kept": {"path": "tests.auth.callables.by_name", "cache": "header"},
                    "session": "mcp_app.authentication.django_session",
                }
            },
            [],
        ),
        (
            {"AUTHENTICATION": {"a": {"path": "a.b", "cache": "body"}, "b": {}}},
            ["mcp_app.E002"] * 2,
        ),
        ({"AUTHENTICATION": {"a": "decimal.Decimal"}}, ["mcp_app.E003"]),
        (
            {
                "AUTHENTICATION": {
                    "a": "rest_framework.authentication.SessionAuthentication",
                    "b": {"path": "tests.auth.drf_classes.Session"},
                }
            },
            ["mcp_app.E007"] * 2,
        ),
        ({"STATE_KEYS": ["k" * 32, "k" * 31]}, ["mcp_app.E004"]),
        (
            {
                "PUBLIC_URL": "https://example.org/mcp",
                "HOSTS": ["example.org", ".example.org", "[::1]", "127.0.0.1"],
                "ORIGINS": ["https://example.org", "http://localhost:8000"],
                "AUTHENTICATION": {"token": "tests.auth.callables.by_name"},
            },
            [],
        ),
        ({"PUBLIC_URL": "example.org"}, ["mcp_app.W002"]),
        ({"ORIGINS": ["https://example.org/"]}, ["mcp_app.W002"]),
        ({"HOSTS": ["https://example.org", "a b"]}, ["mcp_app.W002"] * 2),
        (
            {
                "AUTHENTICATION": dict.fromkeys(
                    ("public", "two words", ""), "tests.auth.callables.by_name"
                )
            },
            ["mcp_app.W002"] * 3,
        ),
        # Of what has the wrong type nothing more can be said.
        ({"AROUND": 7, "STATE_KEYS": ["short"]}, ["mcp_app.E002"]),
    ],
)
def test_settings(given: Any, found: list[str]) -> None:
    assert ids(given) == found


def test_a_path_that_has_a_new_one_is_told_with_it() -> None:
    old = "mcp_app.auth.tokens.access_token"
    log = {"()": "mcp_app.interface.json_logs.JsonFormatter"}
    given = {"AUTHENTICATION": {"token": {"path": old}}}
    with override_settings(MCP=given, LOGGING={"formatters": {"json": log}}):
        way, formatter = check_settings(None)
    assert way.msg == f"MCP names {old!r}: write 'mcp_app.authentication.access_token'."
    assert formatter.msg.endswith(": write 'mcp_app.logs.JsonFormatter'.")
    assert {way.id, formatter.id} == {"mcp_app.E010"}


def test_sentences() -> None:
    with override_settings(MCP={"STATE_KEYS": ["secret"], "AROUND": ["a.b"]}):
        first, second = check_settings(None)
    assert first.msg == "'a.b' cannot be imported: No module named 'a'"
    assert second.msg == (
        'Key 0 of MCP["STATE_KEYS"] has 6 characters; it needs at least 32.'
    )


def test_an_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("channels_redis", "channels_redis.pubsub", "rest_framework"):
        monkeypatch.setitem(sys.modules, module, None)
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    path = "rest_framework.authentication.TokenAuthentication"
    monkeypatch.delitem(sys.modules, "rest_framework.authentication", raising=False)
    given = {"AUTHENTICATION": {"drf": path}, "DOORBELL": "rings"}
    with override_settings(MCP=given, CHANNEL_LAYERS={"rings": {"BACKEND": backend}}):
        way, doorbell = check_settings(None)
        assert check_deployment(None) == []
    assert (way.id, doorbell.id) == ("mcp_app.E003", "mcp_app.E008")
    assert way.msg.endswith('Install it: pip install "django-mcp-app[drf]"')
    assert doorbell.msg == (
        f'MCP["DOORBELL"]: Cannot import BACKEND {backend!r} specified for rings.'
        ' Install it: pip install "django-mcp-app[redis]"'
    )


@pytest.mark.parametrize(
    ("hosts", "given", "found"),
    [
        (["example.org"], {}, []),
        (["*"], {}, ["mcp_app.E005"]),
        (["*"], {"HOSTS": ["example.org"]}, []),
        (["*"], {"PUBLIC_URL": "https://example.org/mcp"}, []),
        (["example.org"], {"HOSTS": ["*"]}, ["mcp_app.E006"]),
        (["example.org"], {"ORIGINS": ["*"]}, ["mcp_app.E006"]),
        # What cannot be read is told by the other check.
        (["*"], {"LIMITS": "of"}, []),
    ],
)
def test_deployment(hosts: list[str], given: dict[str, Any], found: list[str]) -> None:
    with override_settings(ALLOWED_HOSTS=hosts, MCP=given):
        told = [each for each in check_deployment(None) if each.level > checks.INFO]
    assert [each.id for each in told] == found


def test_a_server_that_names_what_the_settings_lack() -> None:
    # The test has no access to a database: a statement would raise.
    assert check_access(None) == []
    assert check_access(None, databases=["other"]) == []


@pytest.mark.django_db
def test_the_servers_that_are_closed() -> None:
    assert check_access(None, databases=["default"]) == []
    Server.objects.create(slug="open", access="public")
    Server.objects.create(slug="shop", access="partners token keys")
    [found] = check_access(None, databases=["default"])
    assert (found.id, found.level) == ("mcp_app.W019", checks.WARNING)
    assert found.msg == (
        'The server “shop” is closed: MCP["AUTHENTICATION"] has no “partners”, “keys”.'
    )
    names = dict.fromkeys(("partners", "keys", "token"), "builtins.len")
    with override_settings(MCP={"AUTHENTICATION": names}):
        assert check_access(None, databases=["default"]) == []
    with override_settings(MCP=[]):
        assert check_access(None, databases=["default"]) == []


WWW = {"PUBLIC_URL": "https://www.example.org/mcp"}


@pytest.mark.parametrize(
    ("site", "given", "found"),
    [
        ({"SECURE_SSL_REDIRECT": True}, {}, ["SECURE_SSL_REDIRECT"]),
        ({"SECURE_SSL_REDIRECT": True}, WWW, []),
        (
            {"SECURE_SSL_REDIRECT": True},
            {"PUBLIC_URL": "http://example.org/mcp"},
            ["SECURE_SSL_REDIRECT"],
        ),
        ({"PREPEND_WWW": True}, {}, ["PREPEND_WWW"]),
        ({"PREPEND_WWW": True}, WWW, []),
        (
            {"PREPEND_WWW": True},
            {"PUBLIC_URL": "https://example.org/mcp"},
            ["PREPEND_WWW"],
        ),
    ],
)
def test_redirects(
    site: dict[str, Any], given: dict[str, Any], found: list[str]
) -> None:
    with override_settings(ALLOWED_HOSTS=["example.org"], MCP=given, **site):
        told = [each for each in check_deployment(None) if each.id == "mcp_app.W018"]
    assert [each.msg.partition(" ")[0] for each in told] == found


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        ("channels.layers.InMemoryChannelLayer", ["mcp_app.I001"]),
        ("channels_redis.pubsub.RedisPubSubChannelLayer", []),
    ],
)
def test_a_doorbell_that_nobody_else_hears(backend: str, found: list[str]) -> None:
    layers = {"default": {"BACKEND": backend}}
    with override_settings(CHANNEL_LAYERS=layers, ALLOWED_HOSTS=["example.org"]):
        channel_layers.backends.clear()
        assert [each.id for each in check_deployment(None)] == found
    channel_layers.backends.clear()


@pytest.fixture
def unsafe() -> Iterator[None]:
    with override_settings(ALLOWED_HOSTS=["*"], MCP={"TREADS": 1}):
        yield


@pytest.mark.usefixtures("unsafe")
def test_the_command_runs_them_by_their_tag(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("check", tags=[TAG])
    assert "Did you mean 'THREADS'?" in capsys.readouterr().err
    with pytest.raises(SystemCheckError, match=r"mcp_app\.E005"):
        call_command("check", tags=[TAG], deploy=True)


def test_they_are_registered_under_our_tag() -> None:
    assert checks.tag_exists(TAG, include_deployment_checks=True)


@pytest.mark.parametrize(
    ("permission", "found"),
    [
        ("", []),
        ("mcp_app.view_tool", []),
        ("mcp_app.view_nothing", ["mcp_app.W003"]),
        ("shop.view_order", ["mcp_app.W003"]),
    ],
)
def test_permissions_that_code_asks_for(
    permission: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()

    @registry.tool(permission=permission)
    def guarded() -> str:
        return "done"

    monkeypatch.setattr(checks_of_app, "mcp", registry)
    warnings = checks_of_app.check_permissions(None)
    assert [each.id for each in warnings] == found
    assert all("'guarded'" in each.msg and permission in each.msg for each in warnings)


def test_rules_that_let_nobody_in(
    monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    registry = Registry()
    registry.rule("known")(lambda asked: True)
    registry.tool("fine", rule="known")(lambda: "done")
    monkeypatch.setattr(checks_of_app, "mcp", registry)
    assert checks_of_app.check_rules(None) == []
    registry.tool("guarded", rule="weekdays")(lambda: "done")
    registry.resource(
        "ledger://{key}", model=Ledger, object_permission="drill.view_ledger"
    )(lambda key: key)
    unknown, objects = checks_of_app.check_rules(None)
    assert (unknown.id, objects.id) == ("mcp_app.W020", "mcp_app.W021")
    assert "'guarded' asks for the rule 'weekdays'" in unknown.msg
    settings.AUTHENTICATION_BACKENDS = ["tests.auth.backends.ByWorker"]
    assert checks_of_app.check_rules(None) == [unknown]


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """What code declares, in the place of the drill's."""
    registry = Registry()
    monkeypatch.setattr(checks_of_app, "mcp", registry)
    return registry


def test_what_lint_says_of_code(registry: Registry) -> None:
    @registry.tool(description="Finds orders.")
    def find(customer: str) -> str:
        return customer

    changes, parameter = check_definitions(None)
    assert changes.id == "mcp_app.I110"
    assert changes.level == checks.INFO
    assert changes.msg == (
        f"The tool “find” ({__name__}.{find.__qualname__}), read_only: Say whether "
        "this tool changes anything."
    )
    assert changes.hint == "Say read_only=True; or read_only=False and destructive=…."
    assert parameter.id == "mcp_app.I120"
    assert parameter.hint


def test_well_declared_code_is_left_alone(registry: Registry) -> None:
    @registry.tool(read_only=True)
    def find() -> str:
        """Finds orders."""
        return ""

    assert check_definitions(None) == []


def test_many_findings_are_counted(registry: Registry) -> None:
    for number in range(PER_RULE + 3):

        @registry.tool(f"tool_{number}", read_only=True)
        def undescribed() -> str:
            return ""

    found = check_definitions(None)
    assert [each.id for each in found] == ["mcp_app.I106"] * PER_RULE
    assert [each for each in found if "more of this kind" in each.msg] == [found[-1]]
    assert found[-1].msg.endswith(" And 3 more of this kind.")


def test_as_many_as_are_shown_are_not_counted(registry: Registry) -> None:
    for number in range(PER_RULE):

        @registry.tool(f"tool_{number}", read_only=True)
        def undescribed() -> str:
            return ""

    found = check_definitions(None)
    assert len(found) == PER_RULE
    assert not any("more of this kind" in each.msg for each in found)


@pytest.mark.parametrize("given", [{"LIMITS": "of"}, {"LIMITS": {"SCHEMA": "big"}}])
def test_with_wrong_settings_nothing_is_linted(
    given: dict[str, Any], registry: Registry
) -> None:
    @registry.tool
    def undescribed() -> str:
        return ""

    assert check_definitions(None)
    with override_settings(MCP=given):
        assert check_definitions(None) == []


def test_what_hides_in_code_is_a_warning(registry: Registry) -> None:
    @registry.tool(read_only=True)
    def look(
        place: Annotated[str, Field(description=gettext_lazy("Where\u200b."))],
    ) -> str:
        """Looks at a place."""
        return place

    [found] = check_definitions(None)
    assert (found.id, found.level) == ("mcp_app.W105", checks.WARNING)
    assert "$.properties.place.description: There is a hidden character" in found.msg
    assert found.hint == "Write the text anew, without the character."


def test_checks_speak_english(registry: Registry) -> None:
    @registry.tool(description="a " * 600, read_only=True)
    def long() -> str:
        return ""

    with translation.override("de"):
        [found] = check_definitions(None)
    assert "has 1200 characters" in found.msg


@pytest.mark.usefixtures("registry")
def test_without_its_option_no_statement_is_made() -> None:
    # The test has no access to a database: a statement would raise.
    assert check_definitions(None) == []
    assert check_definitions(None, databases=[]) == []
    assert check_definitions(None, databases=["other"]) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
def test_what_lint_says_of_rows() -> None:
    row = published(Tool(name="weather", description="Tells the weather."))
    Tool.objects.create(name="not_published")
    Server.objects.update(instructions="word " * 501)
    published(Server.objects.get())
    instructions, kind, changes = sorted(
        check_definitions(None, databases=["default"]), key=lambda each: each.id or ""
    )
    assert (kind.id, kind.level) == ("mcp_app.W101", checks.WARNING)
    assert kind.msg.startswith(f"The tool “weather” (tool {row.pk}), config: ")
    assert (changes.id, changes.hint) == ("mcp_app.W110", None)
    assert (instructions.id, instructions.level) == ("mcp_app.I130", checks.INFO)
    assert instructions.msg.startswith("The server “default” (server default), instr")


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
def test_the_command_looks_at_rows(capsys: pytest.CaptureFixture[str]) -> None:
    published(Tool(name="weather"))
    call_command("check", tags=[TAG])
    assert "weather" not in capsys.readouterr().err
    call_command("check", tags=[TAG], databases=["default"])
    assert "(mcp_app.W106) The tool “weather” (tool " in capsys.readouterr().err
    with pytest.raises(SystemCheckError, match=r"W106"):
        call_command("check", tags=[TAG], databases=["default"], fail_level="WARNING")


@pytest.mark.django_db
@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize(
    ("model", "found"),
    [
        # As before the first `migrate`: nothing is there to be told of.
        (Server, []),
        # As before the `migrate` of an update.
        (Tool, ["mcp_app.I002"]),
    ],
)
def test_tables_that_are_missing(model: type[Model], found: list[str]) -> None:
    with missing(model):
        messages = check_definitions(None, databases=["default"])
    assert [each.id for each in messages] == found
    assert all(ELSEWHERE in each.msg for each in messages)
    # The transaction around it still works.
    assert Tool.objects.count() == 0
