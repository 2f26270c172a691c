"""Checks the settings of the app: each one that cannot be used is named by its key."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands
from django.http.request import split_domain_port
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, Resolver404, resolve
from django.utils.module_loading import import_string

from mcp_app import conf
from mcp_app.api.options import api_problems
from mcp_app.auth import authenticators
from mcp_app.auth.authenticators import sign_in_names
from mcp_app.auth.issuer_options import UnusableIssuer, read_options
from mcp_app.auth.resources import WELL_KNOWN, oauth_problems
from mcp_app.egress.callbacks import event_problems
from mcp_app.egress.sites import option_problems, upstream_sites
from mcp_app.egress.sites import setting_problems as site_problems
from mcp_app.interface.errors import is_installed, with_remedy
from mcp_app.interface.server import OWN_TOOLS, PUBLIC
from mcp_app.invalidation.doorbell import shared_layer
from mcp_app.kinds.registry import unusable_kinds
from mcp_app.models.fields import split_words
from mcp_app.oauth import endpoints
from mcp_app.process.queues import BY_US, UnusableQueue, find_queue
from mcp_app.protocol.headers import is_loopback_host
from mcp_app.telemetry.options import MetricsOptions

# -- advice ----------------------------------------------------------------------------
# Only the command `check` gives advice.
#
# Django runs all checks before most commands.  A person who makes a token or a user
# does not want to read what could be better in twenty tools.

Messages: TypeAlias = list[checks.CheckMessage]
Check: TypeAlias = Callable[..., Messages]
Aliases: TypeAlias = Sequence[str] | None
"""The databases that `--database` names."""

_PROGRAMS: Final = {"manage", "django-admin"}
"""Programs whose first argument is a management command."""


def advising_check(check: Check) -> Check:
    """Return a check that reports infos only if no other command than `check` runs."""

    @wraps(check)
    def filtered_check(*arguments: Any, **options: Any) -> Messages:
        messages = check(*arguments, **options)
        if _is_another_command(sys.argv):
            return [message for message in messages if message.level > checks.INFO]
        return messages

    return filtered_check


def _is_another_command(arguments: Sequence[str]) -> bool:
    # There may be fewer than two arguments.
    program, command = [*arguments, "", ""][:2]
    name = Path(program).stem
    # `python -m` runs the __main__ of any package: Django's, a site's own, pytest's.
    runs_commands = name in _PROGRAMS or (
        name in ("__main__", "django") and command in get_commands()
    )
    return runs_commands and command not in ("", "check", "test")


# -- settings --------------------------------------------------------------------------

SHORTEST_KEY = 32
"""Characters that a key of `STATE_KEYS` has at least."""

_AUTHORITY = r"[^/?#@\s]+"
ORIGIN = re.compile(rf"https?://{_AUTHORITY}|\*")
URL = re.compile(rf"https?://{_AUTHORITY}(?:/[^?#\s]*)?")
HOST = re.compile(r"\.?[\w.-]+|\[[\da-fA-F:.]+\]|\*")


def check_settings(app_configs: object, **_: Any) -> Messages:
    """Report keys of `MCP` that do not exist, and values that cannot be used."""
    try:
        current = conf.current_settings()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="mcp_app.E001")]
    wrong = conf.settings_problems(current)
    return [
        *(
            checks.Warning(sentence, id="mcp_app.W001")
            for sentence in conf.unknown_keys(getattr(settings, "MCP", {}))
        ),
        *(checks.Error(sentence, id="mcp_app.E002") for sentence in wrong),
        *_moved_path_errors(),
        *(
            checks.Error(
                f'MCP["DISABLED_TOOLS"] has {each!r}: mcp_app has no such tool.',
                hint=f"It has {', '.join(OWN_TOOLS)}.",
                id="mcp_app.E021",
            )
            for each in current.disabled_tools
            if each not in OWN_TOOLS
        ),
        # Values of the wrong type are reported already: check nothing else of them.
        *(() if wrong else _unusable_values(current)),
    ]


MOVED: Final[dict[str, str]] = {}
"""Paths of the minor version before, and their new paths."""


def _moved_path_errors() -> Iterator[checks.CheckMessage]:
    for name in ("MCP", "LOGGING"):
        texts = {*_texts_inside(getattr(settings, name, None))}
        for path in sorted(texts & MOVED.keys()):
            sentence = f"{name} names {path!r}: write {MOVED[path]!r}."
            yield checks.Error(sentence, id="mcp_app.E010")


def _texts_inside(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts_inside([*value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts_inside(each)


def _unusable_values(current: conf.McpSettings) -> Messages:
    return [
        *_unverifying(current.authentication),
        *_unimportable(current.call_context_managers),
        *_without_tenant(current.call_context_managers),
        *_channel_layer_errors(current.doorbell),
        *_unusable_kinds(),
        *_queue_errors(current.tasks),
        *_short_keys(current.state_keys),
        *(
            checks.Error(each, id="mcp_app.E011")
            for each in site_problems(current.http)
        ),
        *(
            checks.Error(
                f"{each} Until then the usual options hold.", id="mcp_app.E024"
            )
            for each in event_problems(current.events)
        ),
        *_upstreams_of_ours(current),
        *_tracing_messages(current.tracing),
        *_metrics_messages(current),
        *(checks.Error(each, id="mcp_app.E025") for each in api_problems()),
        *(checks.Warning(each, id="mcp_app.W002") for each in _pointless(current)),
    ]


def _upstreams_of_ours(current: conf.McpSettings) -> Iterator[checks.CheckMessage]:
    ours = {urlsplit(current.public_url or "").hostname, *settings.ALLOWED_HOSTS}
    for key, site in upstream_sites().items():
        if site.host in ours and not is_loopback_host(site.host):
            yield checks.Warning(
                f'MCP["HTTP"][{key!r}] is an MCP server on {site.host}, a host of this'
                " site. Tools that this site took of itself call each other in a loop,"
                " until the time limit.",
                hint="Offer tools of this site at a server of its own, without HTTP.",
                id="mcp_app.W036",
            )


def _metrics_messages(current: conf.McpSettings) -> Iterator[checks.CheckMessage]:
    if current.metrics is None:
        return
    for sentence in option_problems("METRICS", MetricsOptions, current.metrics):
        yield checks.Error(f"{sentence} Until then they are off.", id="mcp_app.E027")
    if not is_installed("prometheus_client"):
        missing = ModuleNotFoundError(name="prometheus_client")
        message = with_remedy('MCP["METRICS"] needs prometheus-client', missing)
        yield checks.Error(message, id="mcp_app.E028")
    if current.audit == "off":
        message = 'MCP["AUDIT"] is "off", so the metrics do not tell of calls.'
        yield checks.Warning(message, id="mcp_app.W034")


def _unverifying(entries: Mapping[str, Any]) -> Iterator[checks.CheckMessage]:
    for name, value in entries.items():
        entry = conf.Entry.from_setting(value)
        path = entry.path
        if path in MOVED:  # an error of its own names the new path
            continue
        if path == conf.BY_ISSUER:
            try:
                read_options(name, entry.options)
            except UnusableIssuer as error:
                message = f'MCP["AUTHENTICATION"][{name!r}] {error}'
                yield checks.Error(message, id="mcp_app.E014")
            continue
        try:
            authenticators.import_verifier(path)
        except authenticators.Unusable as error:
            number = "E007" if isinstance(error, authenticators.BringsCsrf) else "E003"
            message = f'MCP["AUTHENTICATION"][{name!r}]: {error}'
            yield checks.Error(message, id=f"mcp_app.{number}")


def _channel_layer_errors(alias: str) -> Iterator[checks.CheckMessage]:
    try:
        shared_layer(alias)
    except ImproperlyConfigured as error:
        yield checks.Error(str(error), id="mcp_app.E008")


def _queue_errors(setting: str) -> Iterator[checks.CheckMessage]:
    if setting not in BY_US:
        try:
            find_queue(setting)
        except UnusableQueue as error:
            yield checks.Error(str(error), id="mcp_app.E023")


def _tracing_messages(options: object) -> Iterator[checks.CheckMessage]:
    if options is None:
        return
    try:
        from mcp_app.server.tracing import TracingOptions  # noqa: PLC0415 - an extra
    except ImportError as error:
        sentence = with_remedy('MCP["TRACING"] needs a package', error)
        yield checks.Error(sentence, id="mcp_app.E028")
        return
    for each in option_problems("TRACING", TracingOptions, options):
        sentence = f"{each} Until then nothing is traced."
        yield checks.Error(sentence, id="mcp_app.E027")
    if not is_installed("opentelemetry.sdk"):
        yield checks.Warning(
            'MCP["TRACING"] is set, but OpenTelemetry\'s SDK is not installed, so spans'
            " go nowhere.",
            hint="pip install opentelemetry-sdk, with an exporter: docs/deploy/"
            "telemetry.md has an example.",
            id="mcp_app.W033",
        )


def _unusable_kinds() -> Iterator[checks.CheckMessage]:
    sentences = [*unusable_kinds()]
    if apps.is_installed("django.contrib.admin"):
        from mcp_app.admin.forms import unusable_forms  # noqa: PLC0415 - needs the admin

        sentences += unusable_forms()
    for sentence in sentences:
        yield checks.Error(sentence, id="mcp_app.E009")


def _pointless(current: conf.McpSettings) -> Iterator[str]:
    """Yield a sentence for each address or name that nothing can match."""
    urls = [] if current.public_url is None else [current.public_url]
    for key, values, form, example in (
        ("PUBLIC_URL", urls, URL, "https://mcp.example.com"),
        ("ORIGINS", current.origins or (), ORIGIN, "https://app.example.com"),
        ("HOSTS", current.hosts or (), HOST, "mcp.example.com"),
    ):
        for value in values:
            if not form.fullmatch(value):
                yield (
                    f'MCP["{key}"] has {value!r}, which can match no request. Write'
                    f" it like {example!r}."
                )
    for name in current.authentication:
        if name == PUBLIC or split_words(name) != (name,):
            yield (
                f'MCP["AUTHENTICATION"] has the name {name!r}, which no server can'
                " choose. A name must be one word, and not “public”."
            )


def _unimportable(paths: Sequence[str]) -> Iterator[checks.CheckMessage]:
    for path in paths:
        try:
            problem = "" if callable(import_string(path)) else "is not callable."
        except ImportError as error:
            problem = f"cannot be imported: {error}"
        if problem:
            yield checks.Error(f"{path!r} {problem}", id="mcp_app.E003")


def _without_tenant(managers: Sequence[str]) -> Iterator[checks.CheckMessage]:
    """Yield a warning if the site has tenants, but calls enter none of them."""
    if getattr(settings, "TENANT_MODEL", None) and not managers:
        yield checks.Warning(
            'TENANT_MODEL is set, but MCP["CALL_CONTEXT_MANAGERS"] is empty, so calls'
            " run in the public schema.",
            hint="docs/middleware.md has a manager that enters the tenant of the host.",
            id="mcp_app.W027",
        )


def _short_keys(keys: Sequence[str]) -> Messages:
    return [
        checks.Error(
            f'Key {index} of MCP["STATE_KEYS"] has {len(key)} characters; it needs at'
            f" least {SHORTEST_KEY}.",
            id="mcp_app.E004",
        )
        for index, key in enumerate(keys)
        if len(key) < SHORTEST_KEY
    ]


# -- sign in ---------------------------------------------------------------------------
# Whether programs can sign in safely, if the settings let them.

ADDRESSES: Final = {
    WELL_KNOWN: endpoints.protected_resource,
    "/.well-known/oauth-authorization-server": endpoints.authorization_server,
}
"""The view that must answer at each address."""


def _company_errors() -> Messages:
    from mcp_app.auth.companies import read_entries  # noqa: PLC0415 - see endpoints.py

    problems = read_entries()[1]
    return [checks.Error(f"{each} It is off.", id="mcp_app.E031") for each in problems]


def check_sign_in(app_configs: object, **_: Any) -> Messages:
    """Report what keeps programs from signing in, and what would make it unsafe."""
    try:
        current = conf.current_settings()
    except ImproperlyConfigured:
        # Another check reports it.
        return []
    wrong: Messages = [
        checks.Error(f"{sentence} Until then nobody can sign in.", id="mcp_app.E015")
        for sentence in oauth_problems(current.oauth)
    ]
    if conf.settings_problems(current) or not sign_in_names():
        return wrong
    return [
        *wrong,
        *(_company_errors() if current.oauth.get("issuers") else ()),
        *_public_url(current.public_url),
        *_metadata_url_errors(),
        *_login_url_errors(),
        *_proxy_warnings(),
    ]


def _public_url(url: str | None) -> Iterator[checks.CheckMessage]:
    if url is None:
        if not settings.DEBUG:
            yield checks.Error(
                'Nobody can sign in, because MCP["PUBLIC_URL"] is not set. Set it to'
                " the address by which programs reach this site, such as"
                ' "https://shop.example.com".',
                id="mcp_app.E016",
            )
        return
    parts = urlsplit(url)
    domain, _port = split_domain_port(parts.netloc.lower())
    if parts.scheme != "https" and not is_loopback_host(domain):
        yield checks.Error(
            f'MCP["PUBLIC_URL"] is {url!r}: programs sign in over https:// alone.',
            id="mcp_app.E017",
        )


def _metadata_url_errors() -> Iterator[checks.CheckMessage]:
    for address, view in ADDRESSES.items():
        try:
            match = resolve(address)
        except Resolver404:
            match = None
        if match is None or match.func is not view:
            yield checks.Error(
                f"{address} is not answered by this app, so programs cannot find out"
                ' how to sign in. Add path("", include("mcp_app.oauth_urls")) to the'
                " site's own URLs, at the root and before what else answers there.",
                id="mcp_app.E018",
            )


def _login_url_errors() -> Iterator[checks.CheckMessage]:
    try:
        path = urlsplit(resolve_url(settings.LOGIN_URL))
        if not path.netloc:
            resolve(path.path)
    except (NoReverseMatch, Resolver404):
        yield checks.Error(
            f"LOGIN_URL is {settings.LOGIN_URL!r}, where nothing is, so people cannot"
            " log in to let a program in. Set it to the site's login page.",
            id="mcp_app.E019",
        )


def _proxy_warnings() -> Iterator[checks.CheckMessage]:
    header = getattr(settings, "SECURE_PROXY_SSL_HEADER", None)
    if header and not conf.mcp_settings.trusted_proxies:
        yield checks.Warning(
            'SECURE_PROXY_SSL_HEADER is set, but MCP["TRUSTED_PROXIES"] is 0. Set it to'
            " the number of proxies in front of the site.",
            id="mcp_app.W024",
        )
