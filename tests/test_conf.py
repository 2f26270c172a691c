"""`settings.MCP` as the app reads it."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from mcp_app import conf
from mcp_app.checks.settings import check_settings
from mcp_app.conf import KEYS, Limits, McpSettings, mcp_settings

# What each key may be, beside its default.
VALUES: dict[str, object] = {
    "PUBLIC_URL": "https://example.org/mcp",
    "HOSTS": ["example.org"],
    "ORIGINS": ["https://example.org"],
    "AUTHENTICATION": {
        "token": "site.mcp.by_token",
        "key": {"path": "site.mcp.by_key", "cache": "header"},
    },
    "CALL_CONTEXT_MANAGERS": ["site.mcp.tenant"],
    "CALL_CONTEXT_HEADERS": ["Accept-Language"],
    "THREADS": 4,
    "LIMITS": "off",
    "AUDIT": "strict",
    "TASKS": "worker",
    "DISABLED_TOOLS": ["get_task_result"],
    "ENVELOPE": "lenient",
    "COERCE": False,
    "STATE_KEYS": ["k" * 32],
    "TRUSTED_PROXIES": ["10.0.0.0/8"],
    "DOORBELL": "bell",
    "AUTODISCOVER": "tools",
    "ENDLESS_TOKENS": True,
    "KINDS": {"mail": "shop.kinds.Mail"},
    "HTTP": {"helpdesk": {"url": "https://help.example.com"}},
    "API": {"AUTHENTICATION": []},
    "OAUTH": {"clients": ["claude.ai"]},
    "EVENTS": {"receivers": ["https://hooks.example.com/"], "deliver": "worker"},
    "ALERTS": {"mail": ["ops@example.com"]},
    "TRACING": {"sample": 0.05},
    "METRICS": {"token": "a-token-of-the-scraper"},
}


def test_every_key_has_a_value_in_this_table() -> None:
    assert set(VALUES) == set(KEYS)


@override_settings(MCP={})
def test_defaults() -> None:
    assert conf.current_settings() == McpSettings()
    assert mcp_settings.threads == 8
    assert mcp_settings.limits == Limits()
    assert mcp_settings.public_url is None
    assert not mcp_settings.is_lenient
    assert conf.settings_problems(conf.current_settings()) == []


@override_settings(MCP={})
def test_the_table_of_limits() -> None:
    limits = mcp_settings.limits
    assert (limits.body, limits.depth, limits.nodes) == (4 * 2**20, 64, 100_000)
    assert (limits.tool_timeout, limits.question_deadline) == (60, 600)
    assert (limits.request_state_age, limits.request_state_size) == (600, 16 * 1024)
    assert (limits.running_calls, limits.sessions_per_principal) == (64, 100)
    assert (limits.tool_rate, limits.tool_burst) == (600, 100)
    assert (limits.request_rate, limits.request_burst) == (1_200, 300)
    assert (limits.anonymous_sessions, limits.anonymous_idle) == (10_000, 3_600)
    assert (limits.heartbeat, limits.drain) == (15, 25)
    assert (limits.session_idle, limits.session_age) == (7 * 86_400, 30 * 86_400)
    assert limits.rates


@pytest.mark.parametrize(("key", "value"), VALUES.items())
def test_a_key_is_read(key: str, value: object) -> None:
    with override_settings(MCP={key: value}):
        found = getattr(mcp_settings, key.lower())
        assert found == (Limits(rates=False) if key == "LIMITS" else value)
        assert conf.settings_problems(conf.current_settings()) == []


def test_a_change_of_settings_is_seen_at_once() -> None:
    with override_settings(MCP={"THREADS": 2}):
        assert mcp_settings.threads == 2
        with override_settings(MCP={"THREADS": 3}):
            assert mcp_settings.threads == 3
        assert mcp_settings.threads == 2
    with override_settings(LANGUAGE_CODE="de"):
        assert mcp_settings is conf.mcp_settings


def test_a_lenient_envelope() -> None:
    with override_settings(MCP={"ENVELOPE": "lenient"}):
        assert mcp_settings.is_lenient


@pytest.mark.parametrize("name", ["drain", "DRAIN", "Drain"])
def test_limits_have_names_in_any_case(name: str) -> None:
    with override_settings(MCP={"LIMITS": {name: 3}}):
        assert mcp_settings.limits == Limits(drain=3)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], r"MCP is \[\]: it must be a dict."),
        ({"LIMITS": "of"}, "is 'of': it must be a dict of limits, or \"off\"."),
        ({"LIMITS": 7}, "is 7: it must be a dict"),
        ({"LIMITS": {"bodi": 1}}, "no limit 'bodi'. Did you mean 'bodies'?"),
        ({"LIMITS": {"xyzzy": 1}}, r"no limit 'xyzzy'\.$"),
        ({"LIMITS": {"drain": "long"}}, r'\["DRAIN"\] is \'long\': Input should be '),
        ({"LIMITS": {"body": 0.5}}, r'\["BODY"\] is 0.5: '),
        ({"LIMITS": {"drain": 0}}, r'\["DRAIN"\] is 0: Input should be greater than 0'),
        ({"LIMITS": {"session_age": 1e300}}, r'\["SESSION_AGE"\] is 1e\+300: .* 31536'),
        ({"LIMITS": {"body": 2**40 + 1}}, r'"BODY"\] is 1099511627777: .* 109951162'),
        ({"LIMITS": {"tool_rate": 0}}, r'"TOOL_RATE"\] is 0: .* switch rates off, set'),
        ({"LIMITS": {"request_burst": -1}}, r'"REQUEST_BURST"\] is -1: '),
        ({"LIMITS": {"tool_rate": 1.5}}, r'"TOOL_RATE"\] is 1.5: '),
        (
            {"LIMITS": {"tool_rate": 50}},
            r'"TOOL_BURST"\] is 100 by default, so set it, too: it must be at most'
            r' "TOOL_RATE", which is 50\.',
        ),
        (
            {"LIMITS": {"tool_rate": 50, "tool_burst": 51}},
            r'"TOOL_BURST"\] is 51: it must be at most "TOOL_RATE", which is 50\.',
        ),
        (
            {"LIMITS": {"request_rate": 0, "request_burst": -1, "body": 10**20}},
            r'"BODY"\] is 1.*"REQUEST_RATE"\] is 0: .*"REQUEST_BURST"\] is -1: ',
        ),
        (
            {"LIMITS": {"batch": 500}},
            r'"REQUEST_BURST"\] is 300: it must be at least "BATCH", which is 500,',
        ),
    ],
)
def test_what_cannot_be_read(given: Any, sentence: str) -> None:
    with (
        override_settings(MCP=given),
        pytest.raises(ImproperlyConfigured, match=sentence.replace("?", r"\?")),
    ):
        conf.current_settings()


@pytest.mark.parametrize(
    ("given", "sentences"),
    [
        ({"TREADS": 1}, ["MCP['TREADS'] is not a setting. Did you mean 'THREADS'?"]),
        ({"threads": 1}, ["MCP['threads'] is not a setting. Did you mean 'THREADS'?"]),
        ({"COLOUR": 1}, ["MCP['COLOUR'] is not a setting."]),
        ({"THREADS": 1}, []),
    ],
)
def test_unknown_keys(given: dict[str, object], sentences: list[str]) -> None:
    assert conf.unknown_keys(given) == sentences
    with override_settings(MCP=given):
        assert conf.current_settings().threads in (1, 8)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"PUBLIC_URL": 7}, 'MCP["PUBLIC_URL"] is 7: '),
        ({"AUTHENTICATION": ["a.b"]}, "MCP[\"AUTHENTICATION\"] is ['a.b']: "),
        ({"AUTHENTICATION": {"a": 7}}, "MCP[\"AUTHENTICATION\"] is {'a': 7}: "),
        ({"THREADS": "8"}, "MCP[\"THREADS\"] is '8': "),
        ({"THREADS": True}, 'MCP["THREADS"] is True: '),
        ({"THREADS": 0}, 'MCP["THREADS"] is 0: Input should be greater than 0.'),
        ({"THREADS": 10**5}, 'MCP["THREADS"] is 100000: Input should be less than'),
        ({"AUDIT": "on"}, "MCP[\"AUDIT\"] is 'on': Input should be 'batched', "),
        ({"ENVELOPE": "loose"}, "MCP[\"ENVELOPE\"] is 'loose': "),
        ({"COERCE": "yes"}, "MCP[\"COERCE\"] is 'yes': "),
        ({"TRUSTED_PROXIES": 1.5}, 'MCP["TRUSTED_PROXIES"] is 1.5: '),
        ({"TRUSTED_PROXIES": -1}, 'MCP["TRUSTED_PROXIES"] is -1: Input should be'),
        ({"TRUSTED_PROXIES": ["10.0.0.1/8"]},
         "MCP[\"TRUSTED_PROXIES\"] has '10.0.0.1/8', which is not a network: "),
        ({"TRUSTED_PROXIES": ["::1", "proxy"]},
         "MCP[\"TRUSTED_PROXIES\"] has 'proxy', which is not a network: "),
    ],
)  # fmt: skip
def test_values_of_another_type(given: dict[str, Any], place: str) -> None:
    with override_settings(MCP=given):
        (sentence,) = conf.settings_problems(conf.current_settings())
    assert sentence.startswith(place)


HINTS = get_type_hints(Limits, include_extras=True)
NUMBERS = [each.name for each in fields(Limits) if each.name != "rates"]


@pytest.mark.parametrize("value", [math.inf, math.nan, 1e300, 10**400])
def test_no_limit_is_beyond_all_numbers(value: float) -> None:
    for name in NUMBERS:
        with override_settings(MCP={"LIMITS": {name: value}}):
            with pytest.raises(ImproperlyConfigured, match=f'"{name.upper()}"'):
                conf.current_settings()
            assert [each.id for each in check_settings(None)] == ["mcp_app.E001"], name


def test_every_limit_may_be_great() -> None:
    for name in NUMBERS:
        most = conf.MAX_SECONDS if HINTS[name] == conf.Seconds else conf.MAX_NUMBER
        most = conf.MAX_SKILL_BYTES if name == "skill" else most
        # A burst is within its rate, and a batch within the burst.
        others = {"request_rate": most, "request_burst": most, "tool_rate": most}
        others["event_rate"] = most
        with override_settings(MCP={"LIMITS": {**others, name: most}}):
            assert conf.settings_problems(conf.current_settings()) == [], name


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("HOSTS", "*.example.org", "'*.example.org': it must be a list."),
        ("ORIGINS", "*", "'*': it must be a list."),
        ("CALL_CONTEXT_MANAGERS", "a.b", "'a.b': it must be a list."),
        ("STATE_KEYS", "the secret", "not as it must be: it must be a list."),
        ("TRUSTED_PROXIES", "1", "'1': it must be a list."),
        ("ENDLESS_TOKENS", "no", "'no': it must be True or False."),
    ],
)
def test_nothing_is_served_where_a_mistake_would_let_more_in(
    key: str, value: str, said: str
) -> None:
    """Each character would be a host, and every text is true."""
    with override_settings(MCP={key: value}):
        with pytest.raises(ImproperlyConfigured):
            conf.current_settings()
        (error,) = check_settings(None)
    assert (error.id, error.msg) == ("mcp_app.E001", f'MCP["{key}"] is {said}')


def test_every_limit_has_a_type_and_a_default() -> None:
    for each in fields(Limits):
        assert type(getattr(Limits(), each.name)) in (bool, int, float)


def test_an_old_name_leads_to_the_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(conf.RENAMED, "AROUND", "CALL_CONTEXT_MANAGERS")
    assert conf.unknown_keys({"AROUND": []}) == [
        "MCP['AROUND'] is not a setting. It is called 'CALL_CONTEXT_MANAGERS' now."
    ]


@pytest.mark.parametrize(
    ("keys", "secrets"),
    [
        ({}, [settings.SECRET_KEY]),
        ({"STATE_KEYS": ["a" * 32, "b" * 32]}, ["a" * 32, "b" * 32]),
    ],
)
def test_secrets(keys: dict[str, Any], secrets: list[str]) -> None:
    with override_settings(MCP=keys):
        assert conf.secret_keys() == secrets


def test_older_keys_of_the_site_still_open_what_they_sealed() -> None:
    with override_settings(MCP={}, SECRET_KEY_FALLBACKS=["older"]):
        assert conf.secret_keys() == [settings.SECRET_KEY, "older"]
