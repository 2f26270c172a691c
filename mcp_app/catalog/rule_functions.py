"""Rules: functions of the site that say who may use what."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from django.core.exceptions import ValidationError

from mcp_app.catalog.errors import RegistrationError
from mcp_app.catalog.problems import qualified_name
from mcp_app.interface.rights import AccessRequest, Judge, Rule

if TYPE_CHECKING:
    from mcp_app.catalog.bindings import Binding


def made_rule(function: Judge, key: str = "", *, arguments: bool = False) -> Rule:
    """Return a function as a rule; by default its key is its own name.

    Raises `RegistrationError` for what could not be asked.
    """
    name = qualified_name(function)
    if _is_async(function):
        raise RegistrationError(
            f"{name}: a rule runs in a thread. Write it with def, not async def."
        )
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise RegistrationError(
            f"{name}: a rule must take one argument, the access request, as in def"
            " may_refund(request: AccessRequest) -> bool."
        ) from None
    return Rule(key or name, function, arguments)


def _is_async(function: object) -> bool:
    """Whether a call returns a coroutine, which is true whatever the rule says."""
    while isinstance(function, partial):
        function = function.func
    called = getattr(type(function), "__call__", None)  # noqa: B004 - not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def object_rule(owner: str, binding: Binding | None, permission: str) -> Rule:
    """Return the rule that the user has a permission for the instance that is read.

    Raises `RegistrationError` where no variable says which instance that is.
    """
    if binding is None or binding.template is None:
        raise RegistrationError(
            f"{owner}: object_permission checks a model instance, so it works only on a"
            " resource template. Add the option “model”, and a URI with variables."
        )
    names, model = binding.template.variables, binding.model
    fields = {field.name for field in model._meta.concrete_fields} | {"pk"}
    for name in names:
        if name not in fields:
            raise RegistrationError(
                f"{owner}: object_permission cannot find the instance, because"
                f" {name!r} is not a column of {model._meta.label}."
            )

    def judge(asked: AccessRequest) -> bool:
        if asked.arguments is None:
            return True
        shown = _instance(model, {name: asked.arguments.get(name) for name in names})
        has = getattr(asked.user, "has_perm", None)
        return shown is not None and has is not None and bool(has(permission, shown))

    judge.__module__, judge.__qualname__ = owner, f"{permission} of {model._meta.label}"
    return Rule(f"{permission} of {binding.uri}", judge, arguments=True, object=True)


def _instance(model: Any, named: Mapping[str, object]) -> object:
    """Return the one instance that has these values, None where there is not one."""
    try:
        found = list(model._default_manager.filter(**named)[:2])
    except (TypeError, ValueError, ValidationError):
        # A text that no such column has.
        return None
    return cast("object", found[0]) if len(found) == 1 else None
