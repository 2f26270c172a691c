"""System checks: errors are for what cannot run, warnings for what is unsafe.

Under `check --deploy --tag mcp` the unsafe settings are errors.  What lint finds has
the number of its rule: W110 must be fixed before publishing, I110 is advice.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth import get_permission_codename
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, router, transaction
from django.db.models import Model
from django.utils import translation
from django.utils.module_loading import import_string

from mcp_app import conf
from mcp_app.auth import ways
from mcp_app.catalog.lint import RULES, Level
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import (
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.interface.server import PUBLIC, ServerDefinition
from mcp_app.kinds import survey
from mcp_app.kinds.registered import unusable_kinds
from mcp_app.kinds.survey import Surveyed
from mcp_app.models import Server, Worker, durability
from mcp_app.models.listings import words
from mcp_app.pools import counting
from mcp_app.wakeup.doorbell import shared_layer
from mcp_app.wakeup.workers import FRESHNESS

TAG = "mcp"
SHORTEST_KEY = 32

_AUTHORITY = r"[^/?#@\s]+"
ORIGIN = re.compile(rf"https?://{_AUTHORITY}|\*")
URL = re.compile(rf"https?://{_AUTHORITY}(?:/[^?#\s]*)?")
HOST = re.compile(r"\.?[\w.-]+|\[[\da-fA-F:.]+\]|\*")


@checks.register(TAG)
def check_settings(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report keys of `MCP` that do not exist, and values that cannot be used."""
    try:
        current = conf.current()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="mcp_app.E001")]
    wrong = conf.problems(current)
    return [
        *_unknown(getattr(settings, "MCP", {})),
        *(checks.Error(sentence, id="mcp_app.E002") for sentence in wrong),
        *_moved(),
        # Values of the wrong type are told of; nothing more can be said of them.
        *(() if wrong else _unusable(current)),
    ]


def _unknown(given: Mapping[str, object]) -> list[checks.CheckMessage]:
    return [
        checks.Warning(sentence, id="mcp_app.W001")
        for sentence in conf.unknown_keys(given)
    ]


MOVED: Final = {
    "mcp_app.auth.sessions.django_session": "mcp_app.authentication.django_session",
    "mcp_app.auth.tokens.access_token": "mcp_app.authentication.access_token",
    "mcp_app.interface.access_logs.WithoutSessionIds": "mcp_app.logs.WithoutSessionIds",
    "mcp_app.interface.json_logs.JsonFormatter": "mcp_app.logs.JsonFormatter",
}
"""Paths that settings had, and those that they have now."""


def _moved() -> Iterator[checks.CheckMessage]:
    """Yield an error for each path of the settings that has a new one."""
    for name in ("MCP", "LOGGING"):
        for path in sorted(set(_texts(getattr(settings, name, None))) & MOVED.keys()):
            sentence = f"{name} names {path!r}: write {MOVED[path]!r}."
            yield checks.Error(sentence, id="mcp_app.E010")


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts([*value.values()])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def _unusable(current: conf.McpSettings) -> list[checks.CheckMessage]:
    return [
        *_unverifying(current.authentication),
        *_unimportable(current.around),
        *_unmade(current.doorbell),
        *_unusable_kinds(),
        *_short_keys(current.state_keys),
        *map(_pointless, _unmatched(current)),
        *map(_pointless, _unnameable(current.authentication)),
    ]


def _unverifying(entries: Mapping[str, Any]) -> Iterator[checks.CheckMessage]:
    """Yield an error for each entry that can verify nobody."""
    for name, given in entries.items():
        try:
            ways.verifier(conf.Entry.of(given).path)
        except ways.Unusable as error:
            number = "E007" if isinstance(error, ways.BringsCsrf) else "E003"
            said = f'MCP["AUTHENTICATION"][{name!r}]: {error}'
            yield checks.Error(said, id=f"mcp_app.{number}")


def _unmade(alias: str) -> Iterator[checks.CheckMessage]:
    """Yield an error for a channel layer that cannot be made."""
    try:
        shared_layer(alias)
    except ImproperlyConfigured as error:
        yield checks.Error(str(error), id="mcp_app.E008")


def _unusable_kinds() -> Iterator[checks.CheckMessage]:
    """Yield an error for each kind that cannot be used, and each form of one."""
    sentences = [*unusable_kinds()]
    if apps.is_installed("django.contrib.admin"):
        from mcp_app.admin.forms import unusable_forms  # noqa: PLC0415 - needs the admin

        sentences += unusable_forms()
    for sentence in sentences:
        yield checks.Error(sentence, id="mcp_app.E009")


def _pointless(sentence: str) -> checks.CheckMessage:
    return checks.Warning(sentence, id="mcp_app.W002")


def _unmatched(current: conf.McpSettings) -> Iterator[str]:
    """Yield a sentence for each address that no request can have."""
    urls = [] if current.public_url is None else [current.public_url]
    for key, values, form, example in (
        ("PUBLIC_URL", urls, URL, "https://mcp.example.com"),
        ("ORIGINS", current.origins or (), ORIGIN, "https://app.example.com"),
        ("HOSTS", current.hosts or (), HOST, "mcp.example.com"),
    ):
        for value in values:
            if not form.fullmatch(value):
                yield (
                    f'MCP["{key}"] has {value!r}, which matches nothing: write it as '
                    f"{example!r}."
                )


def _unnameable(names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each name that the access of a server cannot have."""
    for name in names:
        if name == PUBLIC or words(name) != (name,):
            yield (
                f'MCP["AUTHENTICATION"] has the name {name!r}, which no server can '
                "choose: a name is one word, and not “public”."
            )


def _unimportable(paths: Sequence[str]) -> list[checks.CheckMessage]:
    found: list[checks.CheckMessage] = []
    for path in paths:
        try:
            problem = "" if callable(import_string(path)) else "is no callable."
        except ImportError as error:
            problem = f"cannot be imported: {error}"
        if problem:
            found.append(checks.Error(f"{path!r} {problem}", id="mcp_app.E003"))
    return found


def _short_keys(keys: Sequence[str]) -> list[checks.CheckMessage]:
    return [
        checks.Error(
            f'Key {index} of MCP["STATE_KEYS"] has {len(key)} characters; it needs at'
            f" least {SHORTEST_KEY}.",
            id="mcp_app.E004",
        )
        for index, key in enumerate(keys)
        if len(key) < SHORTEST_KEY
    ]


@checks.register(TAG)
def check_permissions(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report permissions in code that no model has: nobody would be let in."""
    known = {
        f"{model._meta.app_label}.{codename}"
        for model in apps.get_models()
        for codename in _codenames(model)
    }
    lists = (mcp.tools, mcp.resources, mcp.templates, mcp.prompts)
    demanded = {
        permission: key
        for declared in lists
        for key, each in declared.items()
        for permission in each.definition.demands.permissions
    }
    return [
        checks.Warning(
            f"{key!r} asks for the permission {permission!r}, which no model has: only"
            " superusers will see it.",
            id="mcp_app.W003",
        )
        for permission, key in demanded.items()
        if permission not in known
    ]


@checks.register(TAG)
def check_rules(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report rules that nobody is let in by."""
    lists = (mcp.tools, mcp.resources, mcp.templates, mcp.prompts)
    demanded = {
        rule: key
        for declared in lists
        for key, each in declared.items()
        for rule in each.definition.demands.rules
    }
    found: list[checks.CheckMessage] = [
        checks.Warning(
            f"{key!r} asks for the rule {rule!r}, which no code registers: nobody will"
            " see it.",
            hint="Write @mcp.rule(" + repr(rule) + ") above a function of the site.",
            id="mcp_app.W020",
        )
        for rule, key in demanded.items()
        if rule not in mcp.rules
    ]
    of_objects = any(each.object for each in mcp.rules.values())
    if of_objects and set(settings.AUTHENTICATION_BACKENDS) <= _WITHOUT_OBJECTS:
        found.append(
            checks.Warning(
                "object_permission is asked for, and AUTHENTICATION_BACKENDS has no"
                " backend that knows permissions for one object: only superusers will"
                " read anything.",
                hint="Add the site's own, or that of django-guardian or rules.",
                id="mcp_app.W021",
            )
        )
    return found


_WITHOUT_OBJECTS = frozenset(
    f"django.contrib.auth.backends.{name}"
    for name in (
        "ModelBackend",
        "AllowAllUsersModelBackend",
        "RemoteUserBackend",
        "AllowAllUsersRemoteUserBackend",
    )
)
"""Django's own, which grant nothing where they are asked about an object."""


def _codenames(model: type[Model]) -> Iterator[str]:
    options = model._meta
    for action in options.default_permissions:
        yield get_permission_codename(action, options)
    for codename, _ in options.permissions:
        yield codename


@checks.register(TAG, deploy=True)
def check_deployment(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report settings that make the endpoint refuse everything, or let in too much."""
    try:
        current = conf.current()
    except ImproperlyConfigured:
        # `check_settings` tells.
        return []
    found: list[checks.CheckMessage] = []
    named = current.hosts is not None or current.public_url is not None
    if "*" in settings.ALLOWED_HOSTS and not named:
        found.append(
            checks.Error(
                'ALLOWED_HOSTS has "*", so the MCP endpoint refuses every request.',
                hint='Set MCP["HOSTS"] or MCP["PUBLIC_URL"].',
                id="mcp_app.E005",
            )
        )
    if "*" in (current.hosts or ()) or "*" in (current.origins or ()):
        found.append(
            checks.Error(
                'MCP["HOSTS"] and MCP["ORIGINS"] must not have "*": a page of any'
                " site could call the endpoint.",
                id="mcp_app.E006",
            )
        )
    found += map(_redirected, _redirecting(current.public_url or ""))
    # Of one that cannot be made `check_settings` tells.
    with suppress(ImproperlyConfigured):
        if shared_layer(current.doorbell) is None:
            found.append(_silent(current.doorbell))
    return found


def _redirecting(public_url: str) -> Iterator[str]:
    """Yield the settings that redirect who calls the endpoint by another address.

    Where the site names the address that it gives to people, they have the right one.
    """
    url = urlsplit(public_url)
    if settings.SECURE_SSL_REDIRECT and url.scheme != "https":
        yield "SECURE_SSL_REDIRECT"
    if settings.PREPEND_WWW and not (url.hostname or "").startswith("www."):
        yield "PREPEND_WWW"


def _redirected(setting: str) -> checks.CheckMessage:
    return checks.Warning(
        f"{setting} redirects who calls the MCP endpoint by another address, and most"
        " clients lose what they sent on the way.",
        hint='Set MCP["PUBLIC_URL"] to the address that clients are to be given.',
        id="mcp_app.W018",
    )


def _silent(alias: str) -> checks.CheckMessage:
    return checks.Info(
        f"The channel layer {alias!r} reaches this process only. With several workers"
        f" each looks by itself, every {FRESHNESS / 2:g} s while it serves: right, and"
        " a moment later than with a doorbell.",
        hint='Let MCP["DOORBELL"] name a layer of Redis'
        " (channels_redis.pubsub.RedisPubSubChannelLayer).",
        id="mcp_app.I001",
    )


@checks.register(TAG)
def check_access(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[checks.CheckMessage]:
    """Report servers whose access names what the settings lack: they are closed.

    It is asked only where `--database` names ours.
    """
    using = router.db_for_read(Server)
    if using not in (databases or ()):
        return []
    try:
        known = conf.current().authentication
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=using):
            rows = _servers(using)
    except (ImproperlyConfigured, Error):
        # `check_settings` and `check_definitions` tell.
        return []
    lacking = (
        (row, [each for each in row.access_names if each not in (*known, PUBLIC)])
        for row in rows
    )
    return [_closed(row, names) for row, names in lacking if names]


def _servers(using: str) -> list[Server]:
    tables = connections[using].introspection.table_names()
    # `migrate` runs the checks before it makes our tables.
    there = Server._meta.db_table in tables
    return list(Server.objects.using(using).only("slug", "access")) if there else []


def _closed(row: Server, names: Sequence[str]) -> checks.CheckMessage:
    shown = ", ".join(f"“{visible(name)}”" for name in names)
    return checks.Warning(
        f'The server “{visible(row.slug)}” is closed: MCP["AUTHENTICATION"] has no'
        f" {shown}.",
        hint="Name it in the settings, or untick it under “Who may come in”.",
        id="mcp_app.W019",
    )


@checks.register(TAG)
def check_databases(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[checks.CheckMessage]:
    """Report settings of our database with which what is promised does not hold.

    It is asked only where `--database` names it.
    """
    using = router.db_for_write(Server)
    if using not in (databases or ()):
        return []
    try:
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=using):
            found = durability.doubts(using)
            return [*map(_doubtful, found), *_crowded(using)]
    except Error as error:
        message = f"The database could not be asked how it is set up: {error}"
        return [checks.Info(message, id="mcp_app.I003")]


def _doubtful(doubt: durability.Doubt) -> checks.CheckMessage:
    return checks.Warning(
        doubt.said, hint=doubt.remedy, id=f"mcp_app.W{doubt.kind.value:03}"
    )


def _crowded(using: str) -> Iterator[checks.CheckMessage]:
    """Yield a warning where all processes may need more connections than there are."""
    try:
        threads = conf.current().threads
    except ImproperlyConfigured:
        # `check_settings` tells.
        return
    each = counting.of_process(threads)
    pool = connections[using].settings_dict["OPTIONS"].get("pool")
    usual = counting.pooled(pool) if pool else each.usual
    if usual < each.usual:
        yield checks.Warning(
            f"The pool of each process has at most {usual} connections, and our threads"
            f" may use {each.usual} at the same time: some would wait for others.",
            hint=f'Let OPTIONS["pool"] say "max_size": {each.usual}, and more for the'
            " site's own pages.",
            id="mcp_app.W017",
        )
    there, processes = durability.most_connections(using), _processes(using)
    if there is not None and (total := processes * usual) > there:
        yield checks.Warning(
            f"{processes} processes of {usual} connections each are {total}, and the"
            f" database lets you have {there}: who comes too late is refused. The"
            " site's own pages need some, too.",
            hint='Run fewer processes, lower MCP["THREADS"], or raise max_connections,'
            " or the CONNECTION LIMIT that the role or the database has.",
            id="mcp_app.W016",
        )


def _processes(using: str) -> int:
    """Return how many serve now, or how many WEB_CONCURRENCY says are to serve."""
    said = os.environ.get("WEB_CONCURRENCY", "")
    return max(
        1,
        int(said) if said.isdecimal() else 0,
        # `migrate` runs the checks before it makes our tables.
        Worker.objects.using(using).live().count()
        if Worker._meta.db_table in connections[using].introspection.table_names()
        else 0,
    )


PER_RULE = 5
"""Messages of one rule; the last one counts the others."""

_SERIOUSNESS: Mapping[Level, tuple[str, Callable[..., checks.CheckMessage]]] = {
    Level.MUST_FIX: ("W", checks.Warning),
    Level.ADVICE: ("I", checks.Info),
}
_NOUNS: Mapping[type, str] = {
    ServerDefinition: "server",
    ToolDefinition: "tool",
    ResourceDefinition: "resource",
    ResourceTemplateDefinition: "resource template",
    PromptDefinition: "prompt",
}
_IN_CODE = {
    "hidden-character": "Write the text anew, without the character.",
    "description-missing": "Write a docstring, or description=….",
    "changes-unsaid": "Say read_only=True; or read_only=False and destructive=….",
    "deleting-unsaid": "Say destructive=True or destructive=False.",
    "parameter-description-missing": "Describe them under “Args:” in the docstring, or"
    " with Annotated[…, Field(description=…)].",
    "argument-description-missing": "Describe them under “Args:” in the docstring, or"
    " with Annotated[…, Field(description=…)].",
    "parameter-type-missing": "Annotate the parameter.",
    "media-type-missing": "Say mime_type=….",
    "name-refused": "Give the decorator another name.",
}
"""What a developer writes, by rule."""


@checks.register(TAG)
def check_definitions(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[checks.CheckMessage]:
    """Report what lint finds in code, and in rows where `--database` names theirs.

    As Django's own checks do: without that option `check` makes no statement, so that
    it runs where no database is.
    """
    try:
        wrong = conf.problems(conf.current())
    except ImproperlyConfigured as error:
        wrong = [str(error)]
    if wrong:
        # `check_settings` tells; lint would ask for limits that are no numbers.
        return []
    alias = router.db_for_read(Server)
    # Checks speak English, and lint is translated.
    with translation.override(None):
        found = _counted(survey.code_findings(mcp))
        return [*found, *(_stored(alias) if alias in (databases or ()) else ())]


def _stored(alias: str) -> list[checks.CheckMessage]:
    try:
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=alias):
            tables = connections[alias].introspection.table_names()
            # `migrate` runs the checks before it makes our tables.
            there = Server._meta.db_table in tables
            return _counted(survey.row_findings(mcp)) if there else []
    except Error as error:
        message = f"What staff made could not be looked at: {error}"
        hint = "After an update of the app, run manage.py migrate."
        return [checks.Info(message, hint=hint, id="mcp_app.I002")]


def _counted(found: Iterable[Surveyed]) -> list[checks.CheckMessage]:
    """Return messages, of each rule the first ones and how many more there are."""
    groups: defaultdict[tuple[Level, str], list[Surveyed]] = defaultdict(list)
    for each in found:
        groups[each.finding.level, each.finding.rule].append(each)
    return [
        _message(each, len(group) - PER_RULE if place == PER_RULE else 0)
        for group in groups.values()
        # The command sorts, too: the last one counts the others.
        for place, each in enumerate(sorted(group, key=_sentence)[:PER_RULE], 1)
    ]


def _message(each: Surveyed, more: int) -> checks.CheckMessage:
    rule, level = each.finding.rule, each.finding.level
    letter, kind = _SERIOUSNESS[level]
    others = f" And {more} more of this kind." if more else ""
    return kind(
        _sentence(each) + others,
        hint=_IN_CODE.get(rule) if each.in_code else None,
        id=f"mcp_app.{letter}{RULES[rule]}",
    )


def _sentence(each: Surveyed) -> str:
    noun = _NOUNS[type(each.about)]
    name = (
        each.about.slug if isinstance(each.about, ServerDefinition) else each.about.name
    )
    column = f", {each.finding.field}" if each.finding.field else ""
    where = f"The {noun} “{visible(name)}” ({each.source}){column}"
    return f"{where}: {each.finding.message}"
