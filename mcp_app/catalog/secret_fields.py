"""Fields that hold secrets by their names, and models that are about who comes in."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Any, Final

from django.conf import settings

_SECRET: Final = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|passcode|secret|token|api_?key|private_?key"
    r"|session_?key|(?:auth|authorization|backup|invitation|invite|recovery)_?codes?"
    r"|credentials?|card_?number|cvc|cvv)(?:$|_)",
    re.IGNORECASE,
)
_SECRET_THERE: Final = re.compile(r"(?:^|_)(?:code|key)(?:$|_)", re.IGNORECASE)
"""In models that are about who comes in; elsewhere they are names of things."""
_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")
SECRET_APPS: Final[Set[str]] = {
    *("auth", "authtoken", "contenttypes", "guardian", "knox", "mfa", "django_otp"),
    *("otp_email", "otp_hotp", "otp_static", "otp_totp", "otp_webauthn"),
    *("oauth2_provider", "socialaccount", "usersessions"),
    *("django_celery_beat", "constance", "dynamic_preferences"),
}
_SWAPPING: Final = re.compile(r"(?:OAUTH2_PROVIDER|KNOX)_\w*MODEL")
"""Settings that put a model of the site in the place of one of these apps."""


def is_secret_name(name: str, model: type | None = None) -> bool:
    """Whether a field, of a model if that is known, has a name that secrets have."""
    words = _WORD.sub("_", name)
    if model is not None and _SECRET_THERE.search(words) and _is_about_access(model):
        return True
    return _SECRET.search(words) is not None


def is_secret_model(model: Any) -> bool:
    """Whether the rows of a model may hold secrets, or say who may do what."""
    names = [each.name for each in model._meta.concrete_fields]
    return _is_about_access(model) or any(map(is_secret_name, names))


def _is_about_access(model: type) -> bool:
    swaps = [getattr(settings, n) for n in dir(settings) if _SWAPPING.fullmatch(n)]
    names = SECRET_APPS | {each.lower() for each in swaps}
    return is_secret_name(model.__name__) or comes_from(model, names)


def comes_from(model: type, names: Set[str]) -> bool:
    """Whether a model or a base of it has one of these labels, or its app has."""
    bases = [(each._meta, each) for each in model.__mro__ if hasattr(each, "_meta")]
    # An abstract class of an app that is not installed has no label.
    apps = [o.app_label or each.__module__.split(".")[-2:][0] for o, each in bases]
    return not names.isdisjoint([*apps, *(options.label_lower for options, _ in bases)])
