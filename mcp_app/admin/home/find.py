"""The page that finds a call, a definition, a person or a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from mcp_app.admin.calls.presentation import retention
from mcp_app.admin.page.header import PAGE_MEDIA, render_page
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.workbench.find import (
    CALL,
    MAX_HITS,
    PERSON,
    TOKEN,
    Hit,
    find_hits,
    has_secret,
    query_text,
    without_secrets,
)
from mcp_app.workbench.viewer import MODELS, viewer_of

TYPES: Final[Mapping[str, Label]] = {
    CALL: gettext_lazy("Calls"),
    **{
        str(each._meta.model_name): each._meta.verbose_name_plural or ""
        for each in MODELS
    },
    PERSON: gettext_lazy("Calls of a person"),
    TOKEN: gettext_lazy("Access tokens and connected apps"),
}
"""The headings of the hits, in the order of the page."""


def find_response(request: HttpRequest, admin: ModelAdmin[Any]) -> HttpResponse:
    """Show the hits for a text; open the page of the only hit, or only exact hit."""
    viewer, text = viewer_of(request.user), query_text(request.GET.get("q", ""))
    hits = find_hits(viewer, text)
    likely = [hit for hit in hits if hit.exact] or hits
    # Do not redirect if the text has a whole token: the user must read the warning.
    if len(likely) == 1 and not has_secret(text):
        return HttpResponseRedirect(hit_url(likely[0]))
    by_kind: dict[str, list[tuple[Hit, str]]] = {}
    for hit in hits:
        by_kind.setdefault(hit.kind, []).append((hit, hit_url(hit)))
    context = {
        "media": PAGE_MEDIA,
        "text": visible(without_secrets(text), None),
        "secret": has_secret(text),
        "groups": [
            (label, by_kind[kind]) for kind, label in TYPES.items() if kind in by_kind
        ],
        "is_full": any(len(each) >= MAX_HITS for each in by_kind.values()),
        "retention": retention() if viewer.calls else "",
        "most": MAX_HITS,
    }
    return render_page(admin, request, "find", _("Find"), context)


def hit_url(hit: Hit) -> str:
    """Return the URL of the page that shows what was found."""
    if hit.kind == PERSON:
        parameters = urlencode({"user": hit.key, "when": "month"})
        return f"{reverse('admin:mcp_app_call_changelist')}?{parameters}"
    return reverse(f"admin:mcp_app_{hit.kind}_change", args=[hit.key])
