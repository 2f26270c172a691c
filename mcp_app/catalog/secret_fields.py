"""Fields whose names suggest secrets, and models that are about access."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Set
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import FieldDoesNotExist
from django.db import models

from mcp_app.interface.log_secrets import FIELDS, SURE, names_secret, whole_words

_SECRET_THERE: Final = whole_words("code|key")
"""Words that mean a secret only in models about access: elsewhere, a thing's name."""
SECRET_APPS: Final[Set[str]] = {
    *("auth", "authtoken", "contenttypes", "guardian", "knox", "mfa", "django_otp"),
    *("otp_email", "otp_hotp", "otp_static", "otp_totp", "otp_webauthn"),
    *("oauth2_provider", "socialaccount", "usersessions"),
    *("django_celery_beat", "constance", "dynamic_preferences"),
}
"""The labels of apps whose models are about access, or may hold secrets."""
_NUMBERS: Final = (models.IntegerField, models.FloatField, models.DecimalField)
_SWAPPING: Final = re.compile(r"(?:OAUTH2_PROVIDER|KNOX)_\w*MODEL")
"""Settings that put a model of the site in the place of a model of `SECRET_APPS`."""


def is_secret_name(name: str, model: Any = None) -> bool:
    """Whether a field has a name that secrets have; `model` is its model, if known.

    A relation counts, too, if its rows' key or text is a secret.
    """
    may_be_secret = model is not None and names_secret(name, "", _SECRET_THERE)
    if may_be_secret and _is_about_access(model):
        return True
    try:
        column = model._meta.get_field(name)
    except (AttributeError, FieldDoesNotExist):
        return names_secret(name, "", FIELDS)
    target = column.related_model
    if isinstance(target, type) and secret_in_sight(target):
        return True
    if isinstance(column, models.BooleanField):
        return False
    is_number = isinstance(column, _NUMBERS)
    # “Key” in the name of a number or a primary key means no secret.
    is_key = is_number or getattr(column, "primary_key", False)
    return names_secret(name, 0 if is_number else "", SURE if is_key else FIELDS)


def secret_in_sight(model: Any) -> str:
    """Return the secret field that is a row's key or in its text; "" without one."""
    visible_names = {model._meta.pk.name, *_names_in_text(model)}
    columns = [field for field in model._meta.concrete_fields if not field.is_relation]
    names = [column.name for column in columns if column.name in visible_names]
    return next((name for name in names if is_secret_name(name, model)), "")


def _names_in_text(model: type) -> list[str]:
    """Return the names that `__str__` uses, also in methods and properties."""
    names = ["__str__"]
    # The loop adds to its own list the names that each member uses.
    for name in names:
        member = inspect.getattr_static(model, name, None)
        function = getattr(member, "fget", None) or getattr(member, "func", member)
        code = getattr(inspect.unwrap(function), "__code__", None)
        names += {*getattr(code, "co_names", ())}.difference(names)
    return names


def is_secret_path(path: str, model: Any) -> bool:
    """Whether a path such as `grant__code__in` has a secret in it, or enters JSON.

    JSON counts, because the names of its members are not known here.
    """
    for part in path.split("__"):
        if is_secret_name(part, model):
            return True
        try:
            column = model._meta.get_field(part)
        except (AttributeError, FieldDoesNotExist):
            continue
        if isinstance(column, models.JSONField):
            return True
        model = column.related_model
    return False


def searches_secret(names: Iterable[str], model: Any) -> bool:
    """Whether a search of the admin looks at a secret: callers could guess it."""
    # The signs before the names in `search_fields` say how to compare.
    return any(is_secret_path(name.lstrip("^=@"), model) for name in names)


def is_secret_model(model: Any) -> bool:
    """Whether the rows of a model may hold secrets, or grant rights."""
    names = [field.name for field in model._meta.concrete_fields]
    return _is_about_access(model) or any(is_secret_name(n, model) for n in names)


def _is_about_access(model: type) -> bool:
    swaps = [getattr(settings, n) for n in dir(settings) if _SWAPPING.fullmatch(n)]
    names = SECRET_APPS | {swap.lower() for swap in swaps}
    return is_secret_name(model.__name__) or comes_from(model, names)


def comes_from(model: type, names: Set[str]) -> bool:
    """Whether `names` has the label of a model or one of its bases, or of their app."""
    bases = [(each._meta, each) for each in model.__mro__ if hasattr(each, "_meta")]
    # For an abstract class of an app that is not installed, its package is the label.
    apps = [o.app_label or each.__module__.split(".")[-2:][0] for o, each in bases]
    return not names.isdisjoint([*apps, *(options.label_lower for options, _ in bases)])
