"""What lint says: a sentence, how serious it is, and the column that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from django.utils.formats import number_format
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise


class Level(Enum):
    """What a finding holds up; what holds up saving is an error of the form."""

    MUST_FIX = "must-fix"
    ADVICE = "advice"

    @property
    def label(self) -> _StrPromise:
        return _LABELS[self]


_LABELS = {
    Level.MUST_FIX: _("Must be fixed before publishing"),
    Level.ADVICE: _("Advice"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`rule` is a key of RULES; `field` is a column, or "" for the whole.

    The message is in the language that was active when it was found.
    """

    level: Level
    rule: str
    field: str
    message: str

    def as_advice(self) -> Finding:
        """Return the same finding where nothing waits to be published."""
        return replace(self, level=Level.ADVICE)


def must_fix(rule: str, field: str, message: str) -> Finding:
    return Finding(Level.MUST_FIX, rule, field, message)


def advice(rule: str, field: str, message: str) -> Finding:
    return Finding(Level.ADVICE, rule, field, message)


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Return findings with the worst first, otherwise as they came."""
    return sorted(found, key=lambda each: each.level is Level.ADVICE)


RULES: Mapping[str, int] = MappingProxyType(
    {
        "kind": 101,
        "name-not-allowed": 102,
        "name-refused": 103,
        "uri-not-allowed": 104,
        "hidden-character": 105,
        "description-missing": 106,
        "description-repeats-name": 107,
        "description-long": 108,
        "planted-order": 109,
        "changes-unsaid": 110,
        "deleting-unsaid": 111,
        "hints-contradict": 112,
        "hints-doubtful": 113,
        "schema-refused": 114,
        "schema-choice-at-top": 115,
        "pattern-slow": 116,
        "keyword-misspelt": 117,
        "required-unknown": 118,
        "parameter-unused": 119,
        "parameter-description-missing": 120,
        "parameter-type-missing": 121,
        "parameter-name-refused": 122,
        "argument-description-missing": 123,
        "media-type-missing": 124,
        "tokens-many": 125,
        "tools-many": 126,
        "tokens-many-in-all": 127,
        "twice": 128,
        "description-twice": 129,
        "instructions-long": 130,
        "suggestions-unused": 131,
        "header-underscore": 132,
        "uri-of-the-web": 133,
        "page-too-small": 134,
        "schema-recursive": 135,
        "schema-tag-constant": 136,
        "shared-key": 137,
        "row-not-unique": 138,
        "form-url": 139,
    }
)
"""All rules, each with its number in the ids of system checks; none is used again."""


def count_text(number: int) -> str:
    """Return a number as the active language writes it."""
    return str(number_format(number, force_grouping=True))
