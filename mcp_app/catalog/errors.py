"""Mistakes in what code declares."""

from __future__ import annotations


class RegistrationError(Exception):
    """A declaration cannot be served: raised at import.

    The message names the object, the rule and the value.
    """
