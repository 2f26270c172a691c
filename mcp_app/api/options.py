"""`MCP["API"]`: which classes of Django REST framework authenticate the API's staff."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from inspect import isfunction
from typing import Any, Final

from django.utils.module_loading import import_string

from mcp_app.conf import Entry, mcp_settings
from mcp_app.interface.errors import with_remedy

SESSION: Final = "rest_framework.authentication.SessionAuthentication"


def authentication_classes() -> list[Any]:
    """Return the classes that authenticate staff; none if any option is wrong."""
    paths = mcp_settings.api.get("AUTHENTICATION", [SESSION])
    return [] if any(api_problems()) else [*map(import_string, paths)]


def api_problems() -> Iterator[str]:
    """Yield a sentence for each option that cannot be used."""
    for key in mcp_settings.api.keys() - {"AUTHENTICATION"}:
        yield f'MCP["API"] has no option {key!r}. It has "AUTHENTICATION".'
    for path in mcp_settings.api.get("AUTHENTICATION", ()):
        if problem := _class_problem(path):
            yield f'MCP["API"]["AUTHENTICATION"]: {path!r} {problem}'


def _class_problem(path: str) -> str:
    """Return why a class must not authenticate staff; "" if it may."""
    try:
        base = import_string("rest_framework.authentication.BaseAuthentication")
        target: Any = import_string(path)
    except ImportError as error:
        return with_remedy(f"cannot be imported: {error}", error)
    if not (isinstance(target, type) and issubclass(target, base)):
        return "is no authentication class of Django REST framework."
    for value in mcp_settings.authentication.values():
        with suppress(ImportError, KeyError, TypeError):
            client_class = import_string(Entry.from_setting(value).path)
            if issubclass(target, client_class) or issubclass(client_class, target):
                return 'lets in AI clients, as MCP["AUTHENTICATION"] says.'
    for member in (part for base in target.__mro__ for part in vars(base).values()):
        # A method that uses code of mcp_app may accept the tokens of AI clients.
        for name in member.__code__.co_names if isfunction(member) else ():
            value = member.__globals__.get(name)
            if "mcp_app" in f"{name} {getattr(value, '__module__', '')} {value!r}":
                return "may take the tokens of AI clients, as it uses mcp_app."
    return _model_problem(target)


def _model_problem(target: Any) -> str:
    """Return what is missing if the class stores its keys in an app of its own."""
    model = getattr(target(), "get_model", lambda: None)()
    if model is None or not model._meta.abstract:
        return ""
    return f"needs {model.__module__.removesuffix('.models')!r} in INSTALLED_APPS."
