"""Bundles in the admin: preview a file, then import all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from mcp_app.admin.editors import files
from mcp_app.admin.page.concurrency import PageViews
from mcp_app.admin.page.header import page_url, render_page
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing.comparison import served_label
from mcp_app.admin.publishing.difference_labels import labeled_differences
from mcp_app.admin.publishing.pages import PublishedAdmin, author_of
from mcp_app.catalog.registry import mcp
from mcp_app.interface.definitions import Label
from mcp_app.interface.rules import visible
from mcp_app.models import PublishedRow, Server
from mcp_app.publishing import bundle, services
from mcp_app.publishing.bundle import BundleRefused, ComparedEntry, Comparison, Outcome
from mcp_app.publishing.bundle.applying import outcome_counts
from mcp_app.publishing.publication import OutOfDate
from mcp_app.publishing.rights import lacking_sentence, require_right
from mcp_app.site_time import local_date

# -- exports ---------------------------------------------------------------------------
# The action that exports the chosen rows as a bundle.

Row = TypeVar("Row", bound=PublishedRow)

BUNDLE_RIGHT: Final = "bundle"


class ExportAction(PublishedAdmin[Row]):
    """The action that exports the chosen rows as a bundle."""

    @admin.action(
        description=gettext_lazy("Export as a bundle"), permissions=[BUNDLE_RIGHT]
    )
    def export_chosen(
        self, request: HttpRequest, queryset: QuerySet[Row]
    ) -> HttpResponse | None:
        """Return the bundle; a server is exported with the definitions it offers."""
        chosen = self.model.rows().filter(pk__in=queryset.values("pk"))
        rows: Iterable[PublishedRow] = chosen.select_related("published")
        if self.model is Server:
            rows = bundle.with_definitions(cast("Iterable[Server]", rows))
        try:
            written = bundle.export_bundle(rows)
        except BundleRefused as refused:
            for problem in refused.problems:
                self.message_user(request, problem, messages.ERROR)
            return None
        day = local_date().isoformat()
        return HttpResponse(
            written,
            content_type="application/json",
            headers={
                "Content-Disposition": f'attachment; filename="mcp-bundle-{day}.json"',
                "X-Content-Type-Options": "nosniff",
                "Cache-Control": "no-store",
            },
        )

    def has_bundle_permission(self, request: HttpRequest) -> bool:
        return has_right(request, BUNDLE_RIGHT)


# -- bundles ---------------------------------------------------------------------------

MOST_SHOWN: Final = 200
"""How many entries the page shows field by field."""
OUTCOMES: Final[Mapping[Outcome, tuple[Label, str]]] = {
    Outcome.NEW: (gettext_lazy("New"), "good"),
    Outcome.CHANGED: (gettext_lazy("Changed"), "warn"),
    Outcome.SAME: (gettext_lazy("The working copy is the same"), ""),
    Outcome.CANNOT: (gettext_lazy("Cannot be imported"), "bad"),
}
"""The words for each outcome, and the CSS class of its mark."""


class ImportPages(PublishedAdmin[Row]):
    """The page that previews a file and imports it."""

    change_list_template = "admin/mcp_app/servers.html"

    def page_views(self) -> PageViews:
        return {"import/": ("import", self.import_view), **super().page_views()}

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        may_import = has_right(request, BUNDLE_RIGHT)
        extra = {**(extra_context or {}), "may_import": may_import}
        response = super().changelist_view(request, extra)
        assert isinstance(response, HttpResponse)  # noqa: S101 - Django's stub says less
        return response

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a file, show what it would change, and import exactly that."""
        require_right(request.user, BUNDLE_RIGHT)
        if request.method != "POST":
            return self._import_page(request, {})
        try:
            if "file" in request.POST:
                return self._import_file(request)
            if (file := request.FILES.get("bundle")) is None:
                raise BundleRefused([_("Choose a file first.")])
            if (size := file.size or 0) > bundle.MOST_BYTES:
                raise BundleRefused([bundle.too_large(size)])
            name = visible(str(file.name or ""))
            return self._preview_file(request, file.read(), name)
        except BundleRefused as refused:
            return self._import_page(request, {"problems": refused.problems})

    # -- looking ----------------------------------------------------------------------

    def _preview_file(
        self,
        request: HttpRequest,
        content: bytes,
        name: str,
        problems: Sequence[str] = (),
    ) -> HttpResponse:
        comparison = bundle.compare_bundle(bundle.read_bundle(content), mcp)
        context = {
            **self._comparison_context(request, comparison),
            "file": files.store_user_file(author_of(request), content),
            "name": name,
            "problems": problems,
        }
        return self._import_page(request, context)

    def _comparison_context(
        self, request: HttpRequest, comparison: Comparison
    ) -> dict[str, Any]:
        touched = [
            entry
            for entry in comparison.entries
            if entry.outcome(publish=True) != Outcome.SAME
        ]
        publishing = _publishing(request, comparison)
        count = len(comparison.entries_to_write(publish=not publishing["reasons"]))
        return {
            "comparison": comparison,
            "counts": outcome_counts(comparison, publish=False),
            "entries": [self._displayed_entry(each) for each in touched[:MOST_SHOWN]],
            "others": [visible(str(each.entry)) for each in touched[MOST_SHOWN:]],
            "reasons": _refusal_reasons(request, comparison),
            "impossible": bool(comparison.entries_with_outcome(Outcome.CANNOT)),
            "publishing": publishing,
            "button": ngettext("Import %d", "Import all %d", count) % count,
            "count": count,
        }

    def _displayed_entry(self, compared: ComparedEntry) -> dict[str, Any]:
        """Return an entry; `published` is None if it would repeat `differences`."""
        row, publication = compared.row, compared.publication
        outcome, look = OUTCOMES[compared.outcome(publish=False)]
        published, published_label = None, ""
        if publication is not None:
            number = {"number": publication.number}
            published_label = _("Published there as version %(number)d") % number
            if publication.differences != compared.differences:
                published = labeled_differences(row, publication.differences)
        return {
            "compared": compared,
            "name": visible(str(compared.entry)),
            "outcome": outcome,
            "look": look,
            "url": "" if compared.is_new else page_url(row, "change"),
            "differences": labeled_differences(row, compared.differences),
            "before_label": _("Here"),
            "published": published,
            "served_label": served_label(row),
            "published_label": published_label,
        }

    # -- importing --------------------------------------------------------------------

    def _import_file(self, request: HttpRequest) -> HttpResponse:
        user = author_of(request)
        content = files.user_file_content(user, request.POST["file"], bundle.MOST_BYTES)
        if content is None:
            message = _("The file is no longer stored. Choose and check it again.")
            raise BundleRefused([message])
        name = visible(request.POST.get("name", ""))
        try:
            with transaction.atomic():
                imported = services.import_bundle(
                    user,
                    bundle.read_bundle(content),
                    looked_at=request.POST.get("looked_at", ""),
                    publish="publish" in request.POST,
                    origin=name,
                )
                files.delete_user_file(user)
        except OutOfDate as refused:
            return self._preview_file(request, content, name, [refused.message])
        message = ngettext("%d was imported.", "%d were imported.", len(imported))
        message %= len(imported)
        if not imported:
            message = _("There was nothing to import: all of it is here already.")
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:mcp_app_server_changelist"))

    def _import_page(
        self, request: HttpRequest, context: Mapping[str, Any]
    ) -> HttpResponse:
        return render_page(self, request, "import", _("Import a bundle"), context)


def _refusal_reasons(request: HttpRequest, comparison: Comparison) -> list[str]:
    """Say which permissions the user lacks, each with the first entry that needs it."""
    rights = bundle.needed_rights(comparison, publish=False)
    text = _("%(entry)s: %(right)s")
    return [
        text
        % {"entry": visible(str(entries[0].entry)), "right": lacking_sentence(right)}
        for right, entries in rights.items()
        if not has_right(request, right)
    ]


def _publishing(request: HttpRequest, comparison: Comparison) -> dict[str, Any]:
    """Say what *Publish at once* would do, or why it is disabled."""
    rights = bundle.needed_rights(comparison, publish=True)
    published = [entry for entry in comparison.entries if entry.publication is not None]
    missing = [right for right in rights if not has_right(request, right)]
    reasons = [lacking_sentence(right) for right in missing]
    text = _("%(entry)s: %(problem)s")
    reasons += [
        text % {"entry": visible(str(each.entry)), "problem": problem}
        for each in published
        if each.publication is not None
        for problem in each.publication.problems
    ]
    sentence = ngettext(
        "%(count)d version is published.",
        "%(count)d versions are published.",
        len(published),
    ) % {"count": len(published)}
    return {"count": len(published), "sentence": sentence, "reasons": reasons}
