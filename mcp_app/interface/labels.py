"""Texts that people read: plain, or translated when they are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

Label: TypeAlias = "str | _StrPromise"
