"""What lint finds in definitions, with what a developer or staff can do about it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_permission_codename
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections, router, transaction
from django.utils import translation

from mcp_app import conf
from mcp_app.catalog.definition_texts import has_full_text
from mcp_app.catalog.lint import RULES, Level, unknown_rules
from mcp_app.catalog.open_models import OpenModel, exposure_advice, rows_of_everybody
from mcp_app.catalog.registered_function import RegisteredFunction
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.schema_lint import names_text
from mcp_app.checks.settings import Aliases, Messages, advising_check
from mcp_app.interface.definitions import (
    EventDefinition,
    PromptDefinition,
    ResourceDefinition,
    ResourceTemplateDefinition,
    ToolDefinition,
)
from mcp_app.interface.rules import visible
from mcp_app.interface.server import (
    CARD_PART,
    GET_TASK_RESULT,
    METRICS_SLUG,
    PUBLIC,
    ServerDefinition,
)
from mcp_app.kinds import survey
from mcp_app.kinds.survey import SurveyFinding
from mcp_app.models import Server
from mcp_app.protocol.tasks import FORBIDDEN

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
    EventDefinition: "event type",
}
_DESCRIBE = (
    "Describe them under “Args:” in the docstring, or with"
    " Annotated[…, Field(description=…)]."
)
_IN_CODE = {
    "hidden-character": "Write the text again, without the character.",
    "description-missing": "Write a docstring, or description=….",
    "moment-unsaid": "Write a docstring that says when it happens.",
    "changes-unsaid": "Set read_only=True, or read_only=False and destructive=….",
    "approval-missing": 'Set permission=…, groups=[…] or approval="other".',
    "outside-unsaid": "Set open_world=True or open_world=False.",
    "title-missing": "Set title=….",
    "deleting-unsaid": "Set destructive=True or destructive=False.",
    "parameter-description-missing": _DESCRIBE,
    "argument-description-missing": _DESCRIBE,
    "parameter-type-missing": "Annotate the parameter.",
    "media-type-missing": "Set mime_type=….",
    "name-refused": "Give the decorator another name.",
}
"""The line that a developer writes, by rule."""


@advising_check
def check_definitions(app_configs: object, **_: Any) -> Messages:
    """Report what lint finds in code."""
    if not _is_configured():
        return []
    # Checks speak English, and lint is translated.
    with translation.override(None):
        return _grouped_messages(survey.code_findings(mcp))


@advising_check
def check_rows(app_configs: object, databases: Aliases = None, **_: Any) -> Messages:
    """Report what lint finds in rows, if `--database` names their database.

    Without that option `check` makes no statement, as Django's own checks do, so that
    it runs without a database, too.
    """
    alias = router.db_for_read(Server)
    if alias not in (databases or ()) or not _is_configured():
        return []
    try:
        # A statement that fails must not spoil a transaction around the check.
        with translation.override(None), transaction.atomic(using=alias):
            has_tables = _has_tables(alias)
            return _grouped_messages(survey.row_findings(mcp)) if has_tables else []
    except Error as error:
        message = f"The definitions made in the admin could not be checked: {error}"
        hint = "After an update of the app, run manage.py migrate."
        return [checks.Info(message, hint=hint, id="mcp_app.I002")]


def _is_configured() -> bool:
    """Whether lint can read its limits; `check_settings` reports it if not."""
    try:
        return not conf.settings_problems(conf.current_settings())
    except ImproperlyConfigured:
        return False


def _has_tables(alias: str) -> bool:
    """Whether our tables are there: `migrate` runs the checks before it makes them."""
    return Server._meta.db_table in connections[alias].introspection.table_names()


def _grouped_messages(findings: Iterable[SurveyFinding]) -> Messages:
    """Return the first messages of each rule, and how many more there are."""
    groups: defaultdict[tuple[Level, str], list[SurveyFinding]] = defaultdict(list)
    for finding in findings:
        groups[finding.finding.level, finding.finding.rule].append(finding)
    return [
        _finding_message(each, len(group) - PER_RULE if count == PER_RULE else 0)
        for group in groups.values()
        # Sorted as the command prints them, so that "And … more" ends the last one.
        for count, each in enumerate(sorted(group, key=_finding_sentence)[:PER_RULE], 1)
    ]


def _finding_message(each: SurveyFinding, rest_count: int) -> checks.CheckMessage:
    rule, level = each.finding.rule, each.finding.level
    letter, kind = _SERIOUSNESS[level]
    rest = f" And {rest_count} more of this kind." if rest_count else ""
    return kind(
        _finding_sentence(each) + rest,
        hint=_IN_CODE.get(rule) if each.in_code else None,
        id=f"mcp_app.{letter}{RULES[rule]}",
    )


def _finding_sentence(each: SurveyFinding) -> str:
    about, column = each.about, f", {each.finding.field}" if each.finding.field else ""
    name = about.slug if isinstance(about, ServerDefinition) else about.name
    where = f"The {_NOUNS[type(about)]} “{visible(name)}” ({each.source}){column}"
    return f"{where}: {each.finding.message}"


# -- rights ----------------------------------------------------------------------------
# Whether the site has the permissions, rules and authenticators that are named.


def check_permissions(app_configs: object, **_: Any) -> Messages:
    """Report permissions in code that no model has: nobody would be let in."""
    permissions: set[str] = set()
    for options in (model._meta for model in apps.get_models()):
        names = [name for name, _label in options.permissions]
        for action in options.default_permissions:
            names.append(get_permission_codename(action, options))
        permissions.update(f"{options.app_label}.{name}" for name in names)
    demanded = {permission: key for key, permission in _demanded_permissions()}
    return [
        checks.Warning(
            f"{key!r} requires the permission {permission!r}, which no model has, so"
            " only superusers will see it.",
            id="mcp_app.W003",
        )
        for permission, key in demanded.items()
        if permission not in permissions
    ]


def _demanded_permissions() -> Iterator[tuple[str, str]]:
    for declared in (mcp.tools, mcp.resources, mcp.templates, mcp.prompts, mcp.events):
        for key, each in declared.items():
            for permission in each.definition.demands.permissions:
                yield key, permission
            approval = getattr(each.definition, "approval", None)
            if approval is not None and approval.permission:
                yield f"approval of {key}", approval.permission
    for label, opened in mcp.open_models.items():
        single = (field.permission for field in opened.all_fields.values())
        yield from ((label, each) for each in (opened.permission, *single) if each)


def check_open_models(app_configs: object, **_: Any) -> Messages:
    """Report fields and rows that tell more than their developer may want."""
    opened = mcp.open_models
    # Each has two models and a lookup, which is longer the more “__” it has.
    longest_first = sorted(
        rows_of_everybody(opened), key=lambda each: -each[2].count("__")
    )
    # The shortest lookup is last, and a dict keeps the last value of a key.
    everybody = {each[0].label: each for each in longest_first}
    return [
        *(checks.Warning(each, id="mcp_app.W023") for each in exposure_advice(opened)),
        *(_warn_of_everybody(*each) for each in everybody.values()),
        *(
            checks.Warning(
                f"{each.label} is opened with events, but it is in another database"
                " than the app's tables: a crash between the two commits loses events.",
                id="mcp_app.W032",
            )
            for each in opened.values()
            if each.events
            and router.db_for_write(each.model) != router.db_for_write(Server)
        ),
    ]


def _warn_of_everybody(
    model: OpenModel, other: OpenModel, lookup: str
) -> checks.Warning:
    name = getattr(other.rows, "__name__", "")
    rows = name if name.isidentifier() else f"rows_of_{other.model.__name__}"
    objects = f"{model.model.__name__}.objects.filter({lookup}__in={rows}(request))"
    return checks.Warning(
        f'{model.label} is opened with rows="all", but it belongs to {other.label}, of'
        f" which a caller sees only some rows. Who looks up {model.label} gets the rows"
        " of everybody, and counts and sums of them.",
        hint=f"If that is not meant: rows=lambda request: {objects}",
        id="mcp_app.W025",
    )


def check_rules(app_configs: object, **_: Any) -> Messages:
    """Report rules that let nobody in."""
    messages: Messages = [
        checks.Warning(
            sentence,
            hint=f"Write @mcp.rule({rule!r}) above a function of the site.",
            id="mcp_app.W020",
        )
        for sentence, rule in unknown_rules(mcp)
    ]
    of_objects = any(each.object for each in mcp.rules.values())
    if of_objects and set(settings.AUTHENTICATION_BACKENDS) <= _WITHOUT_OBJECTS:
        messages.append(
            checks.Warning(
                "A rule uses object_permission, but AUTHENTICATION_BACKENDS has no"
                " backend with permissions for single objects, so only superusers"
                " will read anything.",
                hint="Add a backend of your own, or the one of django-guardian or"
                " rules.",
                id="mcp_app.W021",
            )
        )
    return messages


_WITHOUT_OBJECTS = frozenset(
    f"django.contrib.auth.backends.{prefix}{name}"
    for prefix in ("", "AllowAllUsers")
    for name in ("ModelBackend", "RemoteUserBackend")
)
"""Django's own backends: they grant nothing if they are asked about an object."""


def check_tasks(app_configs: object, **_: Any) -> Messages:
    """Report tools whose tasks a deploy ends, or that hold a transaction for long."""
    try:
        current = conf.current_settings()
    except ImproperlyConfigured:
        # `check_settings` reports it.
        return []
    tools = mcp.tools.values()
    entries = [tool for tool in tools if tool.definition.task != FORBIDDEN]
    messages: Messages = []
    for entry in entries:
        name, timeout = entry.definition.name, entry.definition.timeout
        outlasts = (timeout or current.limits.task_timeout) > current.limits.drain
        if current.tasks == "here" and outlasts and not entry.definition.may_rerun:
            messages.append(
                checks.Warning(
                    f"A deploy ends the tasks of {name!r} that run then, because it may"
                    " not run again.",
                    hint='Give it rerun=True if it may, or set MCP["TASKS"].',
                    id="mcp_app.W030",
                )
            )
        if isinstance(entry.function, RegisteredFunction) and entry.function.atomic:
            messages.append(
                checks.Warning(
                    f"{name!r} has atomic=True: as a task it holds its transaction for"
                    " as long as it runs.",
                    hint="Open transactions inside the function, each a short one.",
                    id="mcp_app.W031",
                )
            )
    return messages


def check_approvals(app_configs: object, **_: Any) -> Messages:
    """Report tools that wait for a person, whose answers some clients cannot fetch."""
    tools = (tool.definition for tool in mcp.tools.values())
    names = [tool.name for tool in tools if tool.approval is not None]
    if not names or not _is_configured():
        return []
    if GET_TASK_RESULT not in conf.current_settings().disabled_tools:
        return []
    message = f"{names_text(names)} can wait for a person, but {GET_TASK_RESULT} is"
    message += " switched off, so clients without tasks cannot call them."
    hint = f'Take {GET_TASK_RESULT} out of MCP["DISABLED_TOOLS"].'
    return [checks.Warning(message, hint=hint, id="mcp_app.W035")]


def check_access(app_configs: object, databases: Aliases = None, **_: Any) -> Messages:
    """Report servers that nobody can use: closed ones, and those that cannot search.

    Our database is asked only if `--database` names it.
    """
    using = router.db_for_read(Server)
    if using not in (databases or ()):
        return []
    try:
        methods = conf.current_settings().authentication
        # A statement that fails must not spoil a transaction around the check.
        with transaction.atomic(using=using):
            rows = _server_rows(using)
    except (ImproperlyConfigured, Error):
        # `check_settings` and `check_rows` report it.
        return []
    messages: Messages = [*_searchless_errors(rows)]
    for row in rows:
        hint = "Give it another address."
        if row.slug == METRICS_SLUG:
            sentence = "The server “metrics” has the address of the site's metrics."
            messages.append(checks.Error(sentence, hint=hint, id="mcp_app.E029"))
        if row.slug == CARD_PART:
            sentence = f"The server “{CARD_PART}” has the address of a server's card."
            messages.append(checks.Error(sentence, hint=hint, id="mcp_app.E030"))
        lacking = [each for each in row.access_names if each not in (*methods, PUBLIC)]
        if lacking:
            names = ", ".join(f"“{visible(name)}”" for name in lacking)
            sentence = (
                f"The server “{visible(row.slug)}” lets nobody in, because"
                f' MCP["AUTHENTICATION"] has no {names}.'
            )
            hint = "Add it to the settings, or untick it under “Who may come in”."
            messages.append(checks.Warning(sentence, hint=hint, id="mcp_app.W019"))
    return messages


def check_public_servers(
    app_configs: object, databases: Aliases = None, **_: Any
) -> Messages:
    """Report servers for everybody, if the addresses of callers may be unknown."""
    using = router.db_for_read(Server)
    try:
        if using not in (databases or ()) or conf.current_settings().trusted_proxies:
            return []
        with transaction.atomic(using=using):
            rows = _server_rows(using)
    except (ImproperlyConfigured, Error):
        return []
    return [
        checks.Warning(
            f"The server “{visible(row.slug)}” is open to everybody. If a proxy stands"
            " in front of this site, all callers who do not sign in share one rate,"
            " because their addresses are not known.",
            hint='Set MCP["TRUSTED_PROXIES"]: 1 for one proxy, ["127.0.0.1"] for none.',
            id="mcp_app.W028",
        )
        for row in rows
        if row.access_names == (PUBLIC,)
    ]


def _searchless_errors(rows: Sequence[Server]) -> Iterator[checks.CheckMessage]:
    """Yield an error for each server whose clients must search, but cannot here."""
    for row in () if has_full_text() else rows:
        if row.listing == Server.ToolList.SEARCH:
            yield checks.Error(
                f"Clients of the server “{visible(row.slug)}” search for tools, but the"
                " SQLite of this Python has no FTS5.",
                hint="List all of its tools, or use a Python whose SQLite has FTS5.",
                id="mcp_app.E013",
            )


def _server_rows(using: str) -> list[Server]:
    if not _has_tables(using):
        return []
    return list(Server.objects.using(using).only("slug", "access", "listing"))
