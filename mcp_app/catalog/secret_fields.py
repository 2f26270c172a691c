"""Fields that hold secrets by their names, and models that are about who comes in."""

from __future__ import annotations

import re
from typing import Final

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
_SECRET_APPS: Final = frozenset(
    {
        *("auth", "contenttypes", "authtoken", "knox", "oauth2_provider", "mfa"),
        *("django_otp", "otp_email", "otp_hotp", "otp_static", "otp_totp"),
        *("otp_webauthn", "socialaccount", "usersessions", "guardian"),
        *("django_celery_beat", "constance"),
    }
)
_SWAPPING: Final = re.compile(r"(?:OAUTH2_PROVIDER|KNOX)_\w*MODEL")
"""Settings that put a model of the site in the place of one of these apps."""


def is_secret_name(name: str, model: type | None = None) -> bool:
    """Whether a field, of a model if that is known, has a name that secrets have."""
    words = _WORD.sub("_", name)
    if _SECRET.search(words) is not None:
        return True
    if model is None or _SECRET_THERE.search(words) is None:
        return False
    return is_about_access(model)


def is_secret_app(label: str) -> bool:
    """Whether the models of an app hold secrets, or say who may do what."""
    return label in _SECRET_APPS


def is_about_access(model: type) -> bool:
    """Whether a model or what it inherits from is of such an app, or swapped for it."""
    names = [n for n in dir(settings) if _SWAPPING.fullmatch(n)]
    swapped = {str(getattr(settings, each)).lower() for each in names}
    return not model_names(model).isdisjoint(_SECRET_APPS | swapped)


def model_names(model: type) -> set[str]:
    """Return the labels of a model, of its bases and of all their apps."""
    names = set[str]()
    for each in model.__mro__:
        if options := getattr(each, "_meta", None):
            # An abstract class of an app that is not installed has no label.
            app = options.app_label or each.__module__.split(".")[-2:][0]
            names |= {app, options.label_lower}
    return names
