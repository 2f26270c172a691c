"""Columns and filters of lists: states in words, problems, tags, servers."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.forms import kinds_for
from mcp_app.admin.page.broken_rows import is_broken_somewhere
from mcp_app.admin.page.header import LOOKS, MEANS, page_url
from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import definition_of
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.kinds import usable_kinds
from mcp_app.kinds.registry import name_of_kind
from mcp_app.models import DefinitionRow, PublishedRow, Server, State
from mcp_app.models.fields import split_words
from mcp_app.models.server import SLUG
from mcp_app.models.stops import is_stopped
from mcp_app.models.versions import PublishedRows

LONGEST_SENTENCE: Final = 160
"""The greatest length of the sentence about a definition."""
NONE = "—"
"""What a column shows if it is empty."""


class StateFilter(admin.SimpleListFilter):
    """Filters by the state as the database computes it."""

    title = gettext_lazy("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, str(state.label)) for state in State]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value not in State.values:
            return queryset
        rows = cast("PublishedRows[Any]", queryset)
        states = rows.with_states(is_stopped(queryset.model))
        is_reported = is_broken_somewhere(request, queryset.model)
        if value == State.BROKEN:
            broken = is_reported & ~Q(reckoned_state=State.STOPPED)
            return states.filter(Q(reckoned_state=value) | broken)
        matches = states.filter(reckoned_state=value)
        return matches if value == State.STOPPED else matches.exclude(is_reported)


class KindFilter(admin.SimpleListFilter):
    """Filters by the kind of a definition."""

    title = gettext_lazy("kind")
    parameter_name = "behind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        kinds = kinds_for(model_admin.model)
        return [(key, str(kind.name)) for key, kind in kinds.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value not in kinds_for(queryset.model):
            return queryset
        return queryset.filter(kind=value)


class ChangesFilter(admin.SimpleListFilter):
    """Filters tools by their effect."""

    title = gettext_lazy("what it changes")
    parameter_name = "changes"

    CHOICES: Mapping[str, tuple[Label, dict[str, bool | None]]] = {
        "reads": (gettext_lazy("Only reads"), {"read_only": True}),
        "changes": (
            gettext_lazy("Adds or changes"),
            {"read_only": False, "destructive": False},
        ),
        "deletes": (gettext_lazy("May delete"), {"destructive": True}),
        "unsaid": (gettext_lazy("Not said"), {"read_only": None, "destructive": None}),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, str(label)) for name, (label, _rows) in self.CHOICES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None or value not in self.CHOICES:
            return queryset
        return queryset.filter(**self.CHOICES[value][1])


class ServerFilter(admin.SimpleListFilter):
    """Filters by the servers that offer the working copy."""

    title = gettext_lazy("server")
    parameter_name = "server"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(server.slug, str(server)) for server in Server.objects.all()[:50]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        server = None
        if value and SLUG.fullmatch(value):
            server = Server.objects.filter(slug=value).first()
        if server is None or server.selection == Server.Selection.ALL:
            return queryset
        if server.selection == Server.Selection.CHOSEN:
            return queryset.filter(servers=server)
        # A server without tags offers nothing.
        condition = Q(pk__in=())
        for tag in split_words(server.tags):
            # In brackets, characters such as `.` and `+` stand for themselves.
            escaped = "".join(f"[{character}]" for character in tag)
            condition |= Q(tags__regex=rf"(^|[ ,]){escaped}($|[ ,])")
        return queryset.filter(condition)


@admin.display(description=gettext_lazy("state"))
def state(row: PublishedRow) -> SafeString:
    """Show the state as a colored word; `held` says that a stop applies."""
    has_stop = getattr(row, "held", False)
    now = State.STOPPED if has_stop else row.state
    return format_html(
        '<span class="mcp-state {}" title="{}">{}</span>',
        LOOKS[now],
        visible("" if has_stop else row.broken, None) or MEANS[now],
        now.label,
    )


@admin.display(description=gettext_lazy("problems"), ordering="-to_fix")
def problems(row: DefinitionRow) -> str:
    """Show how many problems and how much advice there is."""
    texts = []
    if row.to_fix:
        texts.append(_("%(count)d to fix") % {"count": row.to_fix})
    if row.advices:
        text = ngettext(
            "%(count)d piece of advice", "%(count)d pieces of advice", row.advices
        )
        texts.append(text % {"count": row.advices})
    return ", ".join(texts) or NONE


@admin.display(description=gettext_lazy("tokens"), ordering="tokens")
def tokens(row: DefinitionRow) -> str:
    """Show how many tokens the definition takes in a model's context."""
    if not row.tokens:
        return NONE
    # On a phone the list has no headings: add the word.
    text = '≈ {}<span class="mcp-narrow"> {}</span>'
    return format_html(text, row.tokens, _("tokens"))


@admin.display(description=gettext_lazy("try"))
def try_it(row: DefinitionRow) -> SafeString:
    """Return the link to *Try it* of the definition."""
    text = (
        '<a class="mcp-handle" href="{}">{}<span class="visually-hidden"> {}</span></a>'
    )
    return format_html(text, page_url(row, "try"), _("Try it"), row)


def _sentence(row: DefinitionRow) -> str:
    """Say what the working copy does; the kind's name if there is no sentence."""
    kind = usable_kinds(mcp).get(row.kind)
    sentence = ""
    with suppress(ValueError):
        stored = definition_of((row.kind_of_row, ""), row.working_content(), {})
        if kind is not None and stored.config:
            sentence = kind.sentence_safely(stored.definition, stored.config)
    short = Truncator(visible(sentence, None)).chars(LONGEST_SENTENCE)
    return short or str(name_of_kind(row.kind))


@admin.display(description=gettext_lazy("name"), ordering="title")
def name_column(row: DefinitionRow) -> SafeString:
    """Show the title, and below it the identity and what it does."""
    source = row.get_source_display() if row.from_code else _sentence(row)
    title, identity = str(row), visible(row.identity, None)
    name_html = "" if title == identity else format_html("<code>{}</code> · ", identity)
    text = '<span class="mcp-title">{}</span><br><span class="mcp-quiet">{}{}</span>'
    return format_html(text, title, name_html, source)
