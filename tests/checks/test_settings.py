from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

import pytest
from django.conf import settings
from django.core import checks
from django.test import override_settings
from django.urls import path
from django.views.generic import TemplateView

from mcp_app.checks.deployment import check_deployment
from mcp_app.checks.settings import MOVED, advising_check, check_settings, check_sign_in
from mcp_app.egress.callbacks import EventSettings, event_settings
from mcp_app.interface import errors
from mcp_app.process import queues
from mcp_app.telemetry.options import metrics_options
from tests.oauth.program import ORIGIN, WAYS

ISSUER = {
    "path": "mcp_app.authentication.issuer",
    "issuer": "https://id.example.com/realms/staff",
    "claim": "sub",
    "field": "username",
    "audience": "api://mcp",
}


BY_NAME = "tests.auth.callables.by_name"
MANAGERS = "tests.server.context_managers"
DRF = "rest_framework.authentication"


def ids(given: Any) -> str:
    """Return the ids of the messages, without what all begin with."""
    with override_settings(MCP=given):
        found = [str(each.id) for each in check_settings(None)]
    return " ".join(each.removeprefix("mcp_app.") for each in found)


def ways(**entries: Any) -> dict[str, Any]:
    return {"AUTHENTICATION": entries}


GOOD_WAYS = ways(
    drf=f"{DRF}.BasicAuthentication",
    kept={"path": BY_NAME, "cache": "header"},
    session="mcp_app.authentication.django_session",
)
GOOD = {
    "PUBLIC_URL": "https://example.org/mcp",
    "HOSTS": ["example.org", ".example.org", "[::1]", "127.0.0.1"],
    "ORIGINS": ["https://example.org", "http://localhost:8000"],
    **ways(token=BY_NAME),
}
CSRF = ways(
    a=f"{DRF}.SessionAuthentication", b={"path": "tests.auth.drf_classes.Session"}
)
NAMES = {"AUTHENTICATION": dict.fromkeys(("public", "two words", ""), BY_NAME)}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, ""),
        ({"TREADS": 1}, "W001"),
        ([], "E001"),
        ({"LIMITS": "of"}, "E001"),
        ({"THREADS": "8", "TREADS": 1}, "W001 E002"),
        ({"CALL_CONTEXT_MANAGERS": [f"{MANAGERS}.noting"]}, ""),
        ({"CALL_CONTEXT_MANAGERS": [f"{MANAGERS}.unheard_of"]}, "E003"),
        ({"CALL_CONTEXT_MANAGERS": ["tests.drill.running.ROOT"]}, "E003"),
        ({"CALL_CONTEXT_HEADERS": ["Cookie", "X-Tenant"]}, "E002"),
        (GOOD_WAYS, ""),
        (ways(a="no.such.module", b="undotted"), "E003 E003"),
        (ways(a={"path": "a.b", "cache": "body"}, b={}), "E002 E002"),
        (ways(a="decimal.Decimal"), "E003"),
        (ways(a="mcp_app.authentication.issuer"), "E014"),
        (ways(a=ISSUER, b={**ISSUER, "field": "email"}), "E014"),
        (ways(a={**ISSUER, "isuer": "b"}), "E002"),
        (CSRF, "E007 E007"),
        ({"STATE_KEYS": ["k" * 32, "k" * 31]}, "E004"),
        (GOOD, ""),
        ({"PUBLIC_URL": "example.org"}, "W002"),
        ({"ORIGINS": ["https://example.org/"]}, "W002"),
        ({"HOSTS": ["https://example.org", "a b"]}, "W002 W002"),
        (NAMES, "W002 W002 W002"),
        # Of what has the wrong type nothing more can be said.
        ({"ALERTS": {"mail": "ops@example.com"}}, "E002"),
        (
            {"ALERTS": {"mail": ["ops"], "approvals": ["kim"], "x": []}},
            "E002 E002 E002",
        ),
        ({"CALL_CONTEXT_MANAGERS": 7, "STATE_KEYS": ["short"]}, "E002"),
    ],
)
def test_settings(given: Any, found: str) -> None:
    assert ids(given) == found


PACKAGE = queues.django_tasks_package()
IMMEDIATE = {"default": {"BACKEND": f"{PACKAGE}.backends.immediate.ImmediateBackend"}}

OTHER_QUEUES = {
    "default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": ["mcp"]}
}


@pytest.mark.parametrize(
    ("queue", "others", "message"),
    [
        ("worker", {}, ""),
        ("celery", {}, "and this process has no Celery app."),
        ("tests.drill.queue.enqueue", {}, ""),
        ("Celery", {}, 'MCP["TASKS"] is \'Celery\': it must be "here", "worker",'),
        ("no.such", {}, "No module named 'no'."),
        ("tests.drill.running.ROOT", {}, "which is no function."),
        ("django_tasks", {"TASKS": OTHER_QUEUES}, "Queue 'default' is not valid"),
        ("django_tasks", {"TASKS": IMMEDIATE}, "is ImmediateBackend, which has no"),
        ("django_tasks", {"TASKS": {"default": {"BACKEND": "a.b"}}}, "has no backend"),
    ],
)
def test_a_queue_of_the_site(
    queue: str, others: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It keeps what it has read of the settings.
    package = import_module(PACKAGE)
    backends = type(package.task_backends)()
    monkeypatch.setattr(package, "task_backends", backends)
    with override_settings(MCP={"TASKS": queue}, **others):
        errors = check_settings(None)
    assert [each.id for each in errors] == ["mcp_app.E023"] * bool(message)
    assert all(message in each.msg for each in errors)


def test_a_queue_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "find_spec", lambda name: None)
    for queue in ("celery", "django_tasks"):
        with override_settings(MCP={"TASKS": queue}):
            [error] = check_settings(None)
        assert error.id == "mcp_app.E023"


EVENTS: Final = {
    "MCP[\"EVENTS\"] has no option 'reciever'.": {"reciever": []},
    'in "receivers": it must be such as': {"receivers": ["https://hooks.example.com"]},
    "has the \"deliver\" 'celery'": {"deliver": "celery"},
    "has 'ten' in \"networks\"": {"networks": ["ten"]},
    "has the \"ca\" '/none': it is not a file": {"ca": "/none"},
}


@pytest.mark.parametrize("message", EVENTS)
def test_where_events_are_posted_to(message: str) -> None:
    with override_settings(MCP={"EVENTS": EVENTS[message]}):
        [error] = check_settings(None)
        assert event_settings() == EventSettings()
    assert error.id == "mcp_app.E024"
    assert message in error.msg


METRICS: Final = {"token": "of-the-scraper-01"}


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (METRICS, ""),
        ({"networks": ["10.0.0.0/8"], "names": 9}, ""),
        ({}, "E027"),
        ({"token": "too-short"}, "E027"),
        ({"token": None}, "E027"),
        # As a file has it.
        ({"token": "too-short-of-a-file\n"}, "E027"),
        ({**METRICS, "networks": ["ten"]}, "E027"),
        ({**METRICS, "names": 0, "tokens": []}, "E027 E027"),
    ],
)
def test_who_reads_metrics(
    options: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"METRICS": options}
    assert ids(given) == found
    with override_settings(MCP=given):
        assert "short" not in str(check_settings(None))
        assert (metrics_options() is None) is bool(found)
        monkeypatch.setattr(errors, "find_spec", lambda name: None)
        assert metrics_options() is None
        missing = check_settings(None)[-1]
    assert missing.id == "mcp_app.E028"
    assert missing.msg.endswith('pip install "django-mcp-app[metrics]"')


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ""),
        ({"sample": 1, "parents": "all", "user": True}, ""),
        ({"sample": 1.5}, 'MCP["TRACING"] has the "sample" 1.5'),
        ({"sample": "0.1"}, 'MCP["TRACING"] has the "sample" \'0.1\''),
        ({"parents": "some"}, "'signed-in', 'all' or 'none'"),
        ({"user": 1}, 'MCP["TRACING"] has the "user" 1'),
        ({"rate": 1}, "has no option 'rate'."),
    ],
)
def test_what_is_traced(
    options: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with override_settings(MCP={"TRACING": options}):
        messages = check_settings(None)
        assert [each.id for each in messages] == ["mcp_app.E027"] * bool(found)
        assert found in "".join(each.msg for each in messages)
        monkeypatch.setattr(errors, "find_spec", lambda name: None)
        assert check_settings(None)[-1].id == "mcp_app.W033"
        monkeypatch.delitem(sys.modules, "mcp_app.server.tracing")
        monkeypatch.setitem(sys.modules, "opentelemetry", None)
        (missing,) = check_settings(None)
    assert missing.id == "mcp_app.E028"
    assert missing.msg.endswith('pip install "django-mcp-app[otel]"')


def test_without_call_log_metrics_tell_little() -> None:
    assert ids({"METRICS": METRICS, "AUDIT": "off"}) == "W034"


def test_a_site_with_tenants_names_a_manager() -> None:
    with override_settings(TENANT_MODEL="customers.Client"):
        assert ids({}) == "W027"
        assert ids({"CALL_CONTEXT_MANAGERS": [f"{MANAGERS}.of_tenant"]}) == ""


def test_a_path_that_has_a_new_one_is_told_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = "mcp_app.auth.tokens.access_token"
    new = "mcp_app.authentication.access_token"
    log = {"()": "mcp_app.interface.json_logs.JsonFormatter"}
    monkeypatch.setitem(MOVED, old, new)
    monkeypatch.setitem(MOVED, log["()"], "mcp_app.logs.JsonFormatter")
    given = {"AUTHENTICATION": {"token": {"path": old}}}
    # Not overridden: Django 6.1 would set up logging anew.
    monkeypatch.setattr(settings, "LOGGING", {"formatters": {"json": log}})
    with override_settings(MCP=given):
        way, formatter = check_settings(None)
    assert way.msg == f"MCP names {old!r}: write {new!r}."
    assert formatter.msg.endswith(": write 'mcp_app.logs.JsonFormatter'.")
    assert {way.id, formatter.id} == {"mcp_app.E010"}


def test_sentences() -> None:
    with override_settings(
        MCP={"STATE_KEYS": ["secret"], "CALL_CONTEXT_MANAGERS": ["a.b"]}
    ):
        first, second = check_settings(None)
    assert first.msg == "'a.b' cannot be imported: No module named 'a'"
    assert second.msg == (
        'Key 0 of MCP["STATE_KEYS"] has 6 characters; it needs at least 32.'
    )


def test_an_extra_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("channels_redis", "channels_redis.pubsub", "jwt", "rest_framework"):
        monkeypatch.setitem(sys.modules, module, None)
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    path = "rest_framework.authentication.TokenAuthentication"
    monkeypatch.delitem(sys.modules, "rest_framework.authentication", raising=False)
    ways = {"drf": path, "keycloak": ISSUER}
    given = {"AUTHENTICATION": ways, "DOORBELL": "rings"}
    with override_settings(MCP=given, CHANNEL_LAYERS={"rings": {"BACKEND": backend}}):
        way, issuer, doorbell = check_settings(None)
        assert check_deployment(None) == []
    assert (way.id, doorbell.id) == ("mcp_app.E003", "mcp_app.E008")
    assert issuer.id == "mcp_app.E014"
    assert issuer.msg == (
        "MCP[\"AUTHENTICATION\"]['keycloak'] needs a package that is not installed."
        ' Install it: pip install "django-mcp-app[oauth]"'
    )
    assert way.msg.endswith('Install it: pip install "django-mcp-app[drf]"')
    assert doorbell.msg == (
        f'MCP["DOORBELL"]: Cannot import BACKEND {backend!r} specified for rings.'
        ' Install it: pip install "django-mcp-app[redis]"'
    )


# -- advice ----------------------------------------------------------------------------


INFO = checks.Info("Could be better.")
WARNING = checks.Warning("Is unsafe.")


@advising_check
def check(**_: object) -> list[checks.CheckMessage]:
    return [INFO, WARNING]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["manage.py", "check", "--tag", "mcp"], [INFO, WARNING]),
        (["/srv/site/manage.py", "createsuperuser"], [WARNING]),
        (["./manage.py", "mcp_token", "new", "ada", "laptop"], [WARNING]),
        (["/usr/bin/django-admin", "migrate"], [WARNING]),
        (["django-admin.exe", "check"], [INFO, WARNING]),
        (["/lib/django/__main__.py", "runserver"], [WARNING]),
        (["/lib/django/__main__.py", "check"], [INFO, WARNING]),
        (["/srv/mysite/__main__.py", "migrate"], [WARNING]),
        # So it is under a profiler.
        (["django", "migrate"], [WARNING]),
        (["manage.py"], [INFO, WARNING]),
        (["manage.py", "test"], [INFO, WARNING]),
        # A program that runs the checks itself.
        (["pytest", "tests"], [INFO, WARNING]),
        (["/lib/pytest/__main__.py", "-q", "tests"], [INFO, WARNING]),
        (["site.py", "createsuperuser"], [INFO, WARNING]),
        ([""], [INFO, WARNING]),
        ([], [INFO, WARNING]),
    ],
)
def test_who_is_advised(
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    found: list[checks.CheckMessage],
) -> None:
    monkeypatch.setattr(sys, "argv", arguments)
    assert check() == found


# -- sign in ---------------------------------------------------------------------------


urlpatterns = [path("<path:any>", TemplateView.as_view(template_name="home.html"))]


def numbers(**options: Any) -> list[str]:
    found = {"PUBLIC_URL": ORIGIN, "AUTHENTICATION": WAYS, **options}
    named = {name: value for name, value in found.items() if value is not None}
    with override_settings(MCP=named):
        return [str(each.id) for each in check_sign_in(None)]


def test_two_lines_are_enough() -> None:
    assert numbers() == []


def test_who_lets_nobody_sign_in_reads_nothing() -> None:
    token = {"token": WAYS["token"]}
    assert numbers(AUTHENTICATION=token, PUBLIC_URL=None) == []


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"PUBLIC_URL": None}, "mcp_app.E016"),
        ({"PUBLIC_URL": "http://shop.example.com"}, "mcp_app.E017"),
        ({"OAUTH": {"client": []}}, "mcp_app.E015"),
        ({"OAUTH": {"clients": "claude.ai"}}, "mcp_app.E015"),
        ({"OAUTH": {"clients": ["https://claude.ai/"]}}, "mcp_app.E015"),
        ({"OAUTH": {"schemes": ["javascript"]}}, "mcp_app.E015"),
        ({"OAUTH": {"networks": ["10.0.0.1/8"]}}, "mcp_app.E015"),
        ({"OAUTH": {"ca": "/nowhere.pem"}}, "mcp_app.E015"),
        ({"OAUTH": {"registration": "yes"}}, "mcp_app.E015"),
        ({"OAUTH": {"documents": "no"}}, "mcp_app.E015"),
        ({"OAUTH": {"registration": False, "documents": False}}, "mcp_app.E015"),
    ],
)
def test_what_is_unsafe(options: dict[str, Any], number: str) -> None:
    assert numbers(**options) == [number]


def test_http_is_enough_on_loopback() -> None:
    assert numbers(PUBLIC_URL="http://127.0.0.1:8000") == []


@override_settings(ROOT_URLCONF=__name__, LOGIN_URL="https://login.example.com/")
def test_addresses_that_another_app_answers() -> None:
    assert numbers() == ["mcp_app.E018", "mcp_app.E018"]


@override_settings(LOGIN_URL="/nowhere/")
def test_a_login_page_that_is_not_there() -> None:
    assert numbers() == ["mcp_app.E019"]


@override_settings(SECURE_PROXY_SSL_HEADER=("HTTP_X_FORWARDED_PROTO", "https"))
def test_a_proxy_that_is_not_trusted() -> None:
    assert numbers() == ["mcp_app.W024"]
    assert numbers(TRUSTED_PROXIES=1) == []
