"""What the suite asks for, by revision; frozen, so that none is lost in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STATEFUL: Final = "2025-11-25"
STATELESS: Final = "2026-07-28"

_BOTH: Final = frozenset(
    {
        *("completion-complete", "dns-rebinding-protection"),
        *("prompts-get-embedded-resource", "prompts-get-simple"),
        *("prompts-get-with-args", "prompts-get-with-image", "prompts-list"),
        *("resources-list", "resources-read-binary", "resources-read-text"),
        *("resources-templates-read", "server-sse-multiple-streams"),
        *("tools-call-audio", "tools-call-embedded-resource", "tools-call-error"),
        *("tools-call-image", "tools-call-mixed-content", "tools-call-simple-text"),
        *("tools-call-with-progress", "tools-list"),
    }
)

SCORED: Final[Mapping[str, frozenset[str]]] = {
    STATEFUL: _BOTH
    | {
        *("elicitation-sep1034-defaults", "elicitation-sep1330-enums"),
        *("logging-set-level", "ping", "resources-subscribe", "resources-unsubscribe"),
        *("server-initialize", "tools-call-elicitation", "tools-call-sampling"),
        "tools-call-with-logging",
    },
    STATELESS: _BOTH
    | {
        *("caching", "input-required-result-basic-elicitation"),
        "input-required-result-basic-list-roots",
        "input-required-result-basic-sampling",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-missing-input-response",
        "input-required-result-multi-round",
        "input-required-result-multiple-input-requests",
        "input-required-result-non-tool-request",
        *("input-required-result-request-state", "input-required-result-result-type"),
        "input-required-result-tampered-state",
        "input-required-result-unsupported-methods",
        *("input-required-result-validate-input", "sep-2164-resource-not-found"),
        "server-stateless",
    },
}

DEMANDED: Final[Mapping[str, frozenset[str]]] = {
    STATEFUL: frozenset(
        {"json-schema-2020-12", "server-session-lifecycle", "server-sse-polling"}
    ),
    STATELESS: frozenset(
        {
            "http-custom-header-server-validation",
            "http-header-validation",
            "json-schema-2020-12",
        }
    ),
}
"""Scenarios that the suite runs without scoring them, and this server must pass."""

EXERCISED: Final[Mapping[str, frozenset[str]]] = {
    "server-sse-polling": frozenset(
        {
            "server-sse-disconnect-resume",
            "server-sse-priming-event",
            "server-sse-retry-field",
        }
    )
}
"""Checks that only inform where a server does not do what they are about."""

TASKS: Final = (
    *("tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields"),
    *("tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers"),
    *("tasks-dispatch-and-envelope", "tasks-required-task-error"),
    "tasks-mrtr-composition",
)
"""The scenarios of the extension; `tasks-status-notifications` has no check."""

SKILLS: Final = (
    *("sep-2640-skills-enumeration", "sep-2640-skills-manifest"),
    "sep-2640-skills-directory",
)
"""The scenarios of SEP-2640; they look at the first skill of the list."""

WITH_STREAMS: Final[Mapping[str, str]] = {
    "elicitation-sep1034-defaults": "a question of a session stands on a stream",
    "elicitation-sep1330-enums": "a question of a session stands on a stream",
    "logging-set-level": "log messages stand on a stream, and are not advertised",
    "resources-subscribe": "updates stand on a stream, and are not advertised",
    "resources-unsubscribe": "updates stand on a stream, and are not advertised",
    "server-sse-polling": "a stream that is closed for a while is a stream",
    "tools-call-elicitation": "a question of a session stands on a stream",
    "tools-call-sampling": "a question of a session stands on a stream",
    "tools-call-with-logging": "log messages stand on a stream",
    "tools-call-with-progress": "progress stands on a stream",
}
"""What cannot be met where each answer is one JSON document, and why."""
