"""`settings.MCP` from environment variables: MCP_<KEY>=value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

PREFIX: Final = "MCP_"
SIGN_IN_OR_TOKEN: Final = {
    "oauth": "mcp_app.authentication.oauth",
    "token": "mcp_app.authentication.access_token",
}
"""The ways in, unless the environment names others."""

TRUE_WORDS: Final = frozenset({"1", "on", "true", "yes"})
FALSE_WORDS: Final = frozenset({"", "0", "false", "no", "off"})


SECRET: Final = frozenset({"MCP_HTTP", "MCP_METRICS", "MCP_STATE_KEYS"})
"""Variables whose values no message shows."""
COMMANDS = frozenset({"MCP_TOKEN", "MCP_USER"})
"""What begins like a setting, and is read by a command (`mcp_check`, `mcp_stdio`)."""


def mcp_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """The dict for `settings.MCP`.

    A key without a reader is passed on as text, so that the system checks can
    report it with a suggestion.
    """
    return {
        name.removeprefix(PREFIX): _read(name, text)
        for name, text in environ.items()
        if name.startswith(PREFIX) and name not in COMMANDS
    }


def _read(name: str, text: str) -> Any:
    reader = READERS.get(name.removeprefix(PREFIX), str)
    try:
        return reader(text)
    except ValueError as error:
        # It may hold a key of another site.
        value = "a value" if name in SECRET else f"the value {text!r}"
        raise ImproperlyConfigured(
            f"The environment variable {name} has {value}, which cannot be read:"
            f" {error}."
        ) from None


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _truth(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise ValueError("it must be one of true, false, yes, no, on, off, 1, 0")
    return word in TRUE_WORDS


def _json_object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it must be a JSON object")
    return value


def _limits(text: str) -> dict[str, Any] | str:
    return text if text == "off" else _json_object(text)


def _proxies(text: str) -> int | list[str]:
    return int(text) if text.strip().isdecimal() else _words(text)


READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "ALERTS": _json_object,
    "API": _json_object,
    "CALL_CONTEXT_HEADERS": _words,
    "CALL_CONTEXT_MANAGERS": _words,
    "AUTHENTICATION": _json_object,
    "COERCE": _truth,
    "ENDLESS_TOKENS": _truth,
    "EVENTS": _json_object,
    "HOSTS": _words,
    "HTTP": _json_object,
    "LIMITS": _limits,
    "METRICS": _json_object,
    "OAUTH": _json_object,
    "ORIGINS": _words,
    "STATE_KEYS": _words,
    "THREADS": int,
    "TRACING": _json_object,
    "TRUSTED_PROXIES": _proxies,
}
