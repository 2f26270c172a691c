"""System checks: errors are for what cannot run, warnings for what is unsafe.

Under `check --deploy --tag mcp` the unsafe settings are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from mcp_app import conf

TAG = "mcp"
SHORTEST_KEY = 32


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
        # Values of the wrong type are told of; nothing more can be said of them.
        *(() if wrong else _unusable(current)),
    ]


def _unknown(given: Mapping[str, object]) -> list[checks.CheckMessage]:
    return [
        checks.Warning(sentence, id="mcp_app.W001")
        for sentence in conf.unknown_keys(given)
    ]


def _unusable(current: conf.McpSettings) -> list[checks.CheckMessage]:
    paths = [*current.authentication.values(), *current.around]
    return [*_unimportable(paths), *_short_keys(current.state_keys)]


def _unimportable(paths: Sequence[str]) -> list[checks.CheckMessage]:
    found: list[checks.CheckMessage] = []
    for path in paths:
        try:
            import_string(path)
        except ImportError as error:
            found.append(
                checks.Error(f"{path!r} cannot be imported: {error}", id="mcp_app.E003")
            )
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


@checks.register(TAG, deploy=True)
def check_deployment(
    app_configs: Sequence[AppConfig] | None, **_: Any
) -> list[checks.CheckMessage]:
    """Report settings that make the endpoint refuse everything, or let in too much."""
    found: list[checks.CheckMessage] = []
    current = conf.current()
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
    return found
