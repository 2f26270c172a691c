"""Find a call by its error number, a definition by its name, a person, or a token.

What the viewer may not view is not looked for, so nothing here tells that it exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import (
    Case,
    CharField,
    F,
    IntegerField,
    Q,
    QuerySet,
    TextField,
    Value,
    When,
    Window,
)
from django.db.models.functions import Cast, Lower, RowNumber

from mcp_app.auth.user_queries import all_users
from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import visible
from mcp_app.kinds.survey import declarations
from mcp_app.models import AccessToken, Call, DefinitionRow, PublishedRow
from mcp_app.models.call_rows import CallQuery
from mcp_app.models.tokens import VISIBLE_LENGTH
from mcp_app.workbench.viewer import Viewer

MAX_QUERY_LENGTH: Final = 2_000
"""Characters that are searched: the rest of a pasted text is ignored."""
MAX_NAME_LENGTH: Final = 255
"""A longer text is no name."""
MAX_HITS: Final = 10
"""Findings of each type."""
MAX_NUMBERS: Final = 20
"""Error numbers of one text."""
MAX_WORDS: Final = 5
"""Words of a name of a person."""
MAX_TOKENS: Final = 10
"""Beginnings of tokens of one text."""
MAX_TITLES: Final = 100
"""How many titles in code are looked up."""

CALL: Final = "call"
FULL_NAME: Final = ("first_name", "last_name")
PERSON: Final = "person"
TOKEN: Final = str(AccessToken._meta.model_name)

_NUMBER: Final = re.compile(
    # A lookahead, because a word before a number may look like the number's beginning.
    r"(?<![0-9a-z])(?=((?:[0-9a-f][ -]{0,3}){7}[0-9a-f])(?![0-9a-z]))"
)
_TOKEN: Final = re.compile(r"\b(?:mcp|app|key)_[A-Za-z0-9_-]+")
_SECRET: Final = re.compile(r"\b(mcp_[A-Za-z0-9_-]{6})[A-Za-z0-9_-]{30,}")
"""A token with its secret part."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that a search found.

    `kind` is `CALL`, `PERSON`, `TOKEN`, or the name of a definition's or a server's
    model; `key` is the primary key, of a person the user name. `exact` says that the
    whole text names it.
    """

    kind: str
    key: str
    name: str
    about: str = ""
    exact: bool = False


def find_hits(viewer: Viewer, text: str) -> list[Hit]:
    """Return what a text may mean, at most `MAX_HITS` of each type; five queries."""
    wanted = query_text(text)
    if not wanted:
        return []
    return [
        *_call_hits(viewer, wanted),
        *_definitions(viewer, wanted),
        *_person_hits(viewer, wanted),
        *_token_hits(viewer, wanted),
    ]


def query_text(text: str) -> str:
    """Return the text without NUL: no row has it, and some databases refuse it."""
    return " ".join(text.replace("\0", "")[:MAX_QUERY_LENGTH].split())


def without_secrets(text: str) -> str:
    """Return a text for people: each token in it is cut to its beginning."""
    return _SECRET.sub(r"\1…", text)


def has_secret(text: str) -> bool:
    """Whether a text has a whole token, and not only its beginning."""
    return _SECRET.search(text) is not None


# -- calls ----------------------------------------------------------------------------


def error_numbers(text: str) -> list[str]:
    """Return possible error numbers in a text: eight hexadecimal digits each.

    Case does not matter, and there may be blanks or hyphens between the digits.
    """
    numbers = (re.sub(r"[ -]", "", each[1]) for each in _NUMBER.finditer(text.lower()))
    return list(dict.fromkeys(numbers))[:MAX_NUMBERS]


def _call_hits(viewer: Viewer, text: str) -> Iterator[Hit]:
    numbers = error_numbers(text) if viewer.calls else []
    if not numbers:
        return
    ways = [("failure", "=", number) for number in numbers]
    newest: dict[str, Call] = {}
    for call in Call.objects.page(CallQuery(0, ways=ways), MAX_HITS):
        newest.setdefault(call.failure, call)
    for number, call in newest.items():
        yield Hit(CALL, str(call.pk), visible(number), visible(call.name), exact=True)


# -- definitions and servers ------------------------------------------------------


def _definitions(viewer: Viewer, text: str) -> Iterator[Hit]:
    if not viewer.models or len(text) > MAX_NAME_LENGTH:
        return
    names = {str(model._meta.model_name): model for model in viewer.models}
    first, *rest = (_similar_rows(model, text) for model in names.values())
    rows = first.union(*rest, all=True).order_by("rank", "shown_name", "kind_name")
    for rank, kind, pk, title, name, identity in rows:
        declared = declarations(mcp).get(kind, {}).get(identity)
        in_code = "" if declared is None else declared.definition.title
        label = visible(title or in_code or name, None)
        about = "" if label == identity else visible(identity, None)
        yield Hit(kind, str(pk), label, about, exact=rank == 0)


def identities_like(viewer: Viewer, text: str) -> list[str]:
    """Return names and URIs of definitions that are called or titled like a text."""
    models = [each for each in viewer.models if issubclass(each, DefinitionRow)]
    if not models or len(text) > MAX_NAME_LENGTH:
        return []
    first, *rest = (_similar_rows(model, text) for model in models)
    return [identity for *_, identity in first.union(*rest, all=True)]


def _similar_rows(model: type[PublishedRow], text: str) -> QuerySet[Any, Any]:
    """Return `MAX_HITS` rows whose name, title or URI has a text, exact names first.

    The published name counts, too: clients know the row by it.
    """
    name = identity = "slug"
    if issubclass(model, DefinitionRow):
        name, identity = "name", model.IDENTITY
    # Names compare exactly: on some databases `icontains` would respect case.
    lowered = {
        f"low_{each}": Lower(Cast(each, TextField()))
        for each in dict.fromkeys(("title", name, identity))
    }
    letters = text.lower()
    exact = [Q(**{f"{each}__in": spellings(text)}) for each in lowered]
    alike = [_contains_text(each, text) for each in lowered]
    if issubclass(model, DefinitionRow):
        exact.append(Q(published_identity=model.identity_hash(text)))
        declared = declarations(mcp)[str(model._meta.model_name)].items()
        in_code = (
            (key, (each.definition.title or "").lower()) for key, each in declared
        )
        titles = dict([each for each in in_code if letters in each[1]][:MAX_TITLES])
        exact_titles = [each for each, title in titles.items() if title == letters]
        exact.append(Q(**{f"{identity}__in": exact_titles}))
        alike.append(Q(**{f"{identity}__in": list(titles)}))
    is_exact = reduce(or_, exact)
    rows: Any = model.rows().order_by().annotate(**lowered)
    matches: QuerySet[Any, Any] = (
        rows.filter(is_exact | reduce(or_, alike))
        .annotate(
            rank=Case(When(is_exact, then=0), default=1, output_field=IntegerField()),
            kind_name=Value(str(model._meta.model_name), output_field=CharField()),
            shown_name=Cast(name, TextField()),
            shown_identity=Cast(F(identity), TextField()),
        )
        .annotate(place=Window(RowNumber(), order_by=["rank", "shown_name", "pk"]))
        .filter(place__lte=MAX_HITS)
        .values_list("rank", "kind_name", "pk", "title", "shown_name", "shown_identity")
    )
    return matches


def spellings(text: str) -> list[str]:
    """Return what a database's `Lower` may make of a text, in whatever case it is.

    SQLite lowers only ASCII letters: other letters may be as in a sentence, in a title,
    or in capitals.
    """
    cases = (text.lower(), text, text.capitalize(), text.title(), text.upper())
    written = (
        "".join(each.lower() if each.isascii() else each for each in case)
        for case in cases
    )
    return list(dict.fromkeys([text.lower(), *written]))


def _contains_text(column: str, text: str) -> Q:
    return reduce(or_, (Q(**{f"{column}__contains": each}) for each in spellings(text)))


# -- people ---------------------------------------------------------------------------


def _person_hits(viewer: Viewer, text: str) -> Iterator[Hit]:
    """Yield people who made calls, by the name in the calls, and users by any name."""
    if not viewer.calls or len(text) > MAX_NAME_LENGTH:
        return
    users = [*_user_hits(text)] if viewer.users else []
    yield from users
    for call in Call.objects.page(CallQuery(0, ways=[("user_name", "=", text)]), 1):
        if all(call.user_name != user.key for user in users):
            name = visible(call.user_name)
            yield Hit(PERSON, call.user_name, name, exact=call.user_name == text)


def _user_hits(text: str) -> Iterator[Hit]:
    model = get_user_model()
    fields = {each.name for each in model._meta.get_fields()}
    names = (model.USERNAME_FIELD, getattr(model, "EMAIL_FIELD", ""), *FULL_NAME)
    columns = [each for each in dict.fromkeys(names) if each in fields]
    lowered = {f"low_{each}": Lower(each) for each in columns}
    each_word = [
        reduce(or_, (_contains_text(column, word) for column in lowered))
        for word in text.split()[:MAX_WORDS]
    ]
    rows: Any = all_users().annotate(**lowered).filter(reduce(and_, each_word))
    for user in rows.order_by(columns[0])[:MAX_HITS]:
        first, last, *keys = (
            str(getattr(user, each, None) or "") for each in (*FULL_NAME, *columns[:2])
        )
        name, full = str(user.get_username()), f"{first} {last}".strip()
        is_exact = text.lower() in {each.lower() for each in (full, *keys)}
        yield Hit(PERSON, name, visible(name), visible(full), is_exact)


# -- tokens ---------------------------------------------------------------------------


def _token_hits(viewer: Viewer, text: str) -> Iterator[Hit]:
    """Yield the tokens and apps whose beginning is in the text."""
    # In logs, other words look like beginnings of tokens.
    words = _TOKEN.findall(text)
    prefixes = (
        word[:VISIBLE_LENGTH] if word.startswith("mcp") else word for word in words
    )
    beginnings = tuple(dict.fromkeys(prefixes))[:MAX_TOKENS]
    if not beginnings:
        return
    begins = reduce(or_, (Q(prefix__startswith=beginning) for beginning in beginnings))
    rows = AccessToken.objects.filter(begins)
    if not viewer.tokens:
        rows = rows.filter(user=viewer.key)
    for row in rows.order_by("-created", "-pk")[:MAX_HITS]:
        # SQLite ignores case here.
        if row.prefix.startswith(beginnings):
            yield Hit(TOKEN, str(row.pk), str(row), exact=True)
