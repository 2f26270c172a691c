"""The site's settings: one dict `MCP`, read through a typed object.

`mcp_settings.threads` and so on always show the settings in force; a change made by
`override_settings` is seen at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from ipaddress import ip_network
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_type_hints

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.exceptions import ValidationError as DjangoValidationError
from django.core.signals import setting_changed
from django.core.validators import validate_email
from django.dispatch import receiver
from pydantic import Field, TypeAdapter, ValidationError

KIB = 1024
MIB = 1024 * KIB

MAX_SECONDS = 100 * 365 * 86_400
"""A hundred years stand for always: databases and timers can reckon with them."""
MAX_NUMBER = 2**40
"""Of bytes that is a tebibyte."""
MAX_THREADS = 10_000
MAX_SKILL_BYTES = 16 * MIB

Count: TypeAlias = Annotated[int, Field(gt=0, le=MAX_NUMBER)]
PerSecond: TypeAlias = Annotated[float, Field(gt=0, le=MAX_NUMBER)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=MAX_SECONDS)]
Function = TypeVar("Function", bound=Callable[..., Any])

BY_TOKEN = {"token": "mcp_app.authentication.access_token"}
"""The only authenticator if a site names none."""
BY_ISSUER = "mcp_app.authentication.issuer"
"""The path of the authenticator that has options of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes are in bytes (texts in characters), times in seconds.

    `rates` tells whether rates and counts hold; `"off"` switches them off, never
    sizes and depths.
    """

    rates: bool = True
    body: Count = 4 * MIB
    bodies: Count = 64 * MIB
    queues: Count = 64 * MIB
    document: Count = 32 * MIB
    depth: Count = 64
    nodes: Count = 100_000
    batch: Count = 100
    parse_in_thread: Count = 64 * KIB
    nodes_in_thread: Count = 2_000
    tool_result: Count = MIB
    text: Count = 256 * KIB
    skill: Annotated[int, Field(gt=0, le=MAX_SKILL_BYTES)] = 4 * MIB
    schema: Count = 256 * KIB
    schema_depth: Count = 32
    subschemas: Count = 2_000
    tool_timeout: Seconds = 60
    dry_run: Seconds = 10
    query_time: Seconds = 10
    query_rows: Count = 200
    question_deadline: Seconds = 600
    request_state_age: Seconds = 600
    request_state_size: Count = 16 * KIB
    streams_per_session: Count = 8
    streams_per_principal: Count = 32
    streams_per_process: Count = 2_000
    running_calls: Count = 64
    tool_rate: Count = 600
    tool_burst: Count = 100
    request_rate: Count = 1_200
    request_burst: Count = 300
    questions_per_person: Count = 8
    sessions_per_principal: Count = 100
    anonymous_sessions: Count = 10_000
    anonymous_idle: Seconds = 3_600
    heartbeat: Seconds = 15
    session_idle: Seconds = 7 * 86_400
    session_age: Seconds = 30 * 86_400
    tasks_per_person: Count = 8
    ended_tasks_per_person: Count = 1_000
    tasks_rows: Count = 100_000
    tasks_kept: Seconds = 86_400
    tasks_per_process: Count = 4
    task_timeout: Seconds = 3_600
    task_wait: Seconds = 50
    approvals_per_person: Count = 20
    approval_wait: Seconds = 86_400
    event_size: Count = 64 * KIB
    event_rate: Count = 60
    event_burst: Count = 20
    events_kept: Seconds = 3 * 86_400
    events_rows: Count = 500_000
    subscriptions_per_person: Count = 20
    subscriptions_rows: Count = 10_000
    progress_burst: Count = 100
    progress_rate: PerSecond = 20
    drain: Seconds = 25
    audit_buffer: Count = 10_000
    calls_kept: Seconds = 30 * 86_400
    calls_rows: Count = 5_000_000
    statistics_kept: Seconds = 730 * 86_400
    oauth_access: Seconds = 8 * 3_600
    oauth_idle: Seconds = 30 * 86_400
    oauth_overlap: Seconds = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of `MCP["AUTHENTICATION"]`: what verifies, and for how long.

    With `cache` "header" an answer to the same Authorization header is kept.
    `options` are all its other keys, as the settings have them.
    """

    path: str
    cache: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_setting(cls, value: str | Mapping[str, Any]) -> Entry:
        """Read a dotted path, or a mapping; `entry_problems` must find nothing."""
        if isinstance(value, str):
            return cls(path=value)
        options = {key: value[key] for key in value if key not in ENTRY_KEYS}
        return cls(path=value["path"], cache=value.get("cache", ""), options=options)


ENTRY_KEYS = ("path", "cache")
ISSUER_KEYS = (
    *("issuer", "claim", "field", "user", "audience", "jwks", "scopes"),
    *("networks", "ca", "timeout"),
)
"""What an entry with the path `BY_ISSUER` may have beside `ENTRY_KEYS`."""
BY_HEADER = "header"


@dataclass(frozen=True, slots=True, kw_only=True)
class McpSettings:
    """Every key of `MCP`, in lower case; docs/settings.md says what each means."""

    public_url: str | None = None
    hosts: Sequence[str] | None = None
    origins: Sequence[str] | None = None
    authentication: Mapping[str, str | Mapping[str, Any]] = field(
        default_factory=lambda: {**BY_TOKEN}
    )
    call_context_managers: Sequence[str] = ()
    call_context_headers: Sequence[str] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    http: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    threads: Annotated[int, Field(gt=0, le=MAX_THREADS)] = 8
    limits: Limits = field(default_factory=Limits)
    audit: Literal["batched", "strict", "off"] = "batched"
    tasks: str = "here"
    envelope: Literal["strict", "lenient"] = "strict"
    coerce: bool = True
    state_keys: Sequence[str] = ()
    trusted_proxies: Annotated[int, Field(ge=0)] | Sequence[str] = 0
    doorbell: str = "default"
    autodiscover: str = "mcp"
    endless_tokens: bool = False
    disabled_tools: Sequence[str] = ()
    oauth: Mapping[str, Any] = field(default_factory=dict)
    api: Mapping[str, Sequence[str]] = field(default_factory=dict)
    events: Mapping[str, Any] = field(default_factory=dict)
    alerts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tracing: Mapping[str, Any] | None = None
    metrics: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def is_lenient(self) -> bool:
        """Whether unknown members of an envelope are ignored."""
        return self.envelope == "lenient"


KEYS: tuple[str, ...] = tuple(each.name.upper() for each in fields(McpSettings))
LISTS = frozenset(
    {"hosts", "origins", "call_context_managers", "call_context_headers"}
    | {"disabled_tools", "state_keys", "trusted_proxies"}
)
"""Keys whose value must not be a text, because its characters would be a list."""
SECRET = frozenset({"state_keys", "http", "metrics"})
"""Keys whose values no message may show."""
CREDENTIALS = ("authorization", "proxy-authorization", "cookie", "mcp-session-id")
"""Headers that no user code gets."""
RENAMED: dict[str, str] = {}
"""Keys that had another name in the minor version before, and those of now."""
LIMITS: tuple[str, ...] = tuple(each.name for each in fields(Limits))
RATES = {
    "tool_burst": "tool_rate",
    "request_burst": "request_rate",
    "event_burst": "event_rate",
}
"""The limit of calls at once, and the limit of calls in a minute."""


def settings_problems(current: McpSettings) -> list[str]:
    """Return a sentence for each value that its key cannot have."""
    if problems := list(_value_problems("MCP", current)):
        return problems
    return [
        *(
            f'MCP["AUTHENTICATION"][{name!r}] {problem}'
            for name, entry in current.authentication.items()
            for problem in entry_problems(entry)
        ),
        *_proxies_problems(current.trusted_proxies),
        *_alerts_problems(current.alerts),
        *(
            f'MCP["CALL_CONTEXT_HEADERS"] has {each!r}, which your code never gets.'
            for each in current.call_context_headers
            if each.lower() in CREDENTIALS
        ),
    ]


def entry_problems(entry: str | Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with an entry of `MCP["AUTHENTICATION"]`."""
    if isinstance(entry, str):
        return
    path = entry.get("path")
    options = (*ENTRY_KEYS, *(ISSUER_KEYS if path == BY_ISSUER else ()))
    for key in entry:
        if key not in options:
            yield f"has no option {key!r}.{_suggestion(key, options)}"
    if not path:
        yield 'has no "path". Set it to the function or class that authenticates.'
    elif not isinstance(path, str):
        yield f'has the "path" {path!r}: it must be a text.'
    if entry.get("cache", BY_HEADER) != BY_HEADER:
        yield f'has the "cache" {entry["cache"]!r}: it must be "header", or left out.'


def _value_problems(place: str, value: McpSettings | Limits) -> Iterator[str]:
    for name, shape in get_type_hints(type(value), include_extras=True).items():
        setting = getattr(value, name)
        try:
            TypeAdapter(shape).validate_python(setting, strict=True)
        except ValidationError as error:
            shown = _safe_value_text(name, setting)
            # A union reports one error for each of its members: one is enough.
            problem = error.errors()[0]["msg"]
            yield f"{place}[{_quoted_key(name)}] is {shown}: {problem}."


def _safe_value_text(name: str, value: object) -> str:
    return "not as it must be" if name in SECRET else repr(value)


def _proxies_problems(trusted: int | Sequence[str]) -> Iterator[str]:
    for each in () if isinstance(trusted, int) else trusted:
        try:
            ip_network(each)
        except ValueError as error:
            yield (
                f'MCP["TRUSTED_PROXIES"] has {each!r}, which is not a network: {error}.'
            )


def _alerts_problems(alerts: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for key, addresses in alerts.items():
        if key not in ("mail", "approvals"):
            yield f'MCP["ALERTS"] has no option {key!r}. It has "mail" and "approvals".'
            continue
        for address in addresses:
            try:
                validate_email(address)
            except DjangoValidationError:
                problem = f"has {address!r}, which is no mail address."
                yield f'MCP["ALERTS"]["{key}"] {problem}'


def _limits_problems(limits: Limits, defined: Container[str]) -> Iterator[str]:
    """Yield what is wrong with limits; `defined` has the names that the site sets."""
    wrong = list(_value_problems('MCP["LIMITS"]', limits))
    yield from wrong
    if 0 in [getattr(limits, name) for pair in RATES.items() for name in pair]:
        yield 'To switch rates off, set MCP["LIMITS"] to "off".'
    if wrong or not limits.rates:
        return
    for burst, rate in RATES.items():
        at_once, per_minute = getattr(limits, burst), getattr(limits, rate)
        if at_once > per_minute:
            usual = "" if burst in defined else " by default, so set it, too"
            yield (
                f'MCP["LIMITS"][{_quoted_key(burst)}] is {at_once}{usual}: it must be'
                f" at most {_quoted_key(rate)}, which is {per_minute}."
            )
    if limits.request_burst < limits.batch:
        yield (
            f'MCP["LIMITS"]["REQUEST_BURST"] is {limits.request_burst}: it must be at'
            f' least "BATCH", which is {limits.batch}, or no batch of that size would'
            " be taken."
        )


def _quoted_key(name: str) -> str:
    return f'"{name.upper()}"'


EVERY_HOST_REFUSED = 'ALLOWED_HOSTS has "*", so the MCP endpoint refuses every request.'
NAME_HOSTS_HINT = (
    'Set MCP["PUBLIC_URL"] to the address that clients use, such as'
    ' "https://example.com", or MCP["HOSTS"] to its hosts, such as ["example.com"].'
)


def refuses_every_host(current: McpSettings) -> bool:
    """Whether the endpoint answers to no host without DEBUG."""
    has_hosts = current.hosts is not None or current.public_url is not None
    return "*" in settings.ALLOWED_HOSTS and not has_hosts


def unknown_keys(values: Mapping[str, object]) -> list[str]:
    """Return a sentence for each key of `MCP` that does not exist."""
    return [
        f"MCP[{key!r}] is not a setting.{_key_suggestion(str(key))}"
        for key in values
        if key not in KEYS
    ]


def _key_suggestion(name: str) -> str:
    if name in RENAMED:
        return f" It is called {RENAMED[name]!r} now."
    return _suggestion(name.upper(), KEYS)


def _suggestion(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _read_limits(configured: object) -> Limits:
    if configured == "off":
        return Limits(rates=False)
    if not isinstance(configured, Mapping):
        raise ImproperlyConfigured(
            f'MCP["LIMITS"] is {configured!r}: it must be a dict of limits, or "off".'
        )
    values_by_name = {str(key).lower(): value for key, value in configured.items()}
    for name in values_by_name.keys() - set(LIMITS):
        raise ImproperlyConfigured(
            f'MCP["LIMITS"] has no limit {name!r}.{_suggestion(name, LIMITS)}'
        )
    limits = Limits(**values_by_name)
    if problems := list(_limits_problems(limits, values_by_name)):
        # With such a number requests would fail half-way, and leave rows behind.
        raise ImproperlyConfigured(" ".join(problems))
    return limits


def settings_cache(function: Function) -> Function:
    """Cache what a function makes of `MCP`, until the setting is changed."""
    cached = cache(function)

    @receiver(setting_changed, weak=False)
    def forget_values(*, setting: str, **_: object) -> None:
        if setting == "MCP":
            cached.cache_clear()

    return cast("Function", cached)


@settings_cache
def current_settings() -> McpSettings:
    """Return the settings in force; unknown keys are left to the system check."""
    values: Mapping[str, Any] = getattr(settings, "MCP", {})
    if not isinstance(values, Mapping):
        raise ImproperlyConfigured(f"MCP is {values!r}: it must be a dict.")
    values_by_name = {
        key.lower(): value for key, value in values.items() if key in KEYS
    }
    for name in LISTS & values_by_name.keys():
        if isinstance(values_by_name[name], str):
            # Each character would be an entry: a "*" among them lets all in.
            raise ImproperlyConfigured(
                f"MCP[{_quoted_key(name)}] is"
                f" {_safe_value_text(name, values_by_name[name])}: it must be a list."
            )
    if values_by_name.get("endless_tokens") not in (None, True, False):
        raise ImproperlyConfigured(
            f'MCP["ENDLESS_TOKENS"] is {values_by_name["endless_tokens"]!r}: it must'
            " be True or False."
        )
    if "limits" in values_by_name:
        values_by_name["limits"] = _read_limits(values_by_name["limits"])
    return McpSettings(**values_by_name)


class _Current:
    """Reads each attribute from the settings in force."""

    def __getattr__(self, name: str) -> object:
        return getattr(current_settings(), name)


mcp_settings: McpSettings = cast("McpSettings", _Current())


def secret_keys() -> list[str]:
    """Return the secrets for derived keys: the first one seals, and each one opens."""
    if mcp_settings.state_keys:
        return list(mcp_settings.state_keys)
    return [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
