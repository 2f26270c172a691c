"""A class for everything that a site may name in REST_FRAMEWORK."""

from __future__ import annotations


class Nothing:
    def __init__(self, *_args: object, **_options: object) -> None:
        raise TypeError("Nobody is to ask this.")
