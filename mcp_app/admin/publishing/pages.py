"""Pages that compare, publish, roll back and stop a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from mcp_app.admin.page import deleted_rows, keys, stop_banner
from mcp_app.admin.page.concurrency import LockingAdmin, PageViews
from mcp_app.admin.page.deleted_rows import redirect_missing_row
from mcp_app.admin.page.header import page_url, row_page_context
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.publishing import comparison, history
from mcp_app.admin.publishing.history import published_sentence, saved_sentence
from mcp_app.catalog.registry import mcp
from mcp_app.models import DefinitionRow, DefinitionVersion, PublishedRow
from mcp_app.publishing import services
from mcp_app.publishing.publication import PublicationRefused
from mcp_app.publishing.rights import Person, require_right
from mcp_app.publishing.row_findings import store_findings

Row = TypeVar("Row", bound=PublishedRow)

SAVED: Final = "mcp_saved"
"""The attribute of a request with the message about the saved row."""


class PublishedAdmin(LockingAdmin[Row]):
    """The base of the admin of definitions and of the admin of servers."""

    change_form_template = "admin/mcp_app/change_form.html"

    class Media:
        css = {"all": ["mcp_app/admin.css"]}

    def page_views(self) -> PageViews:
        row = "<path:object_id>"
        return {
            f"{row}/publish/": ("publish", self.publish_view),
            f"{row}/unpublish/": ("unpublish", self.unpublish_view),
            f"{row}/rollback/<int:number>/": ("rollback", self.rollback_view),
            f"{row}/version/<int:number>/": ("version", self.version_view),
            f"{row}/stop/": ("stop", self.stop_view),
            **super().page_views(),
        }

    # -- the form ---------------------------------------------------------------

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *positional: Any,
        **named: Any,
    ) -> HttpResponse:
        row = named.get("obj")
        if row is not None and row.pk is not None and IS_POPUP_VAR not in request.GET:
            page = row_page_context(self, request, row, "change")
            shared = ("strip", "tabs", "row", "publish_url")
            context.update({name: page[name] for name in shared})
        context["may_publish"] = has_right(request, "publish")
        return super().render_change_form(request, context, *positional, **named)

    def save_related(
        self, request: HttpRequest, form: ModelForm[Row], formsets: Any, change: bool
    ) -> None:
        super().save_related(request, form, formsets, change)
        if isinstance(form.instance, DefinitionRow):
            store_findings(form.instance, mcp)

    def response_add(
        self, request: HttpRequest, obj: Row, post_url_continue: str | None = None
    ) -> HttpResponse:
        if "_publish" in request.POST:
            return HttpResponseRedirect(page_url(obj, "publish"))
        self._note_saved(request, obj)
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Row) -> HttpResponse:
        if "_publish" in request.POST:
            return HttpResponseRedirect(page_url(obj, "publish"))
        self._note_saved(request, obj)
        return super().response_change(request, obj)

    def _note_saved(self, request: HttpRequest, row: Row) -> None:
        """Let Django's message say what clients see, instead of “changed”."""
        rows = self.model.rows().using(row._state.db).select_related("published")
        if fresh := rows.filter(pk=row.pk).first():
            may_publish = has_right(request, "publish")
            message = saved_sentence(request, fresh, may_publish=may_publish)
            vars(request)[SAVED] = message

    def message_user(
        self,
        request: HttpRequest,
        message: Any,
        level: int | str = messages.INFO,
        *positional: Any,
        **options: Any,
    ) -> None:
        """Show a message; what `_note_saved` says replaces a message of success."""
        if level == messages.SUCCESS:
            message = vars(request).pop(SAVED, message)
        super().message_user(request, message, level, *positional, **options)

    # -- comparing and publishing -------------------------------------------------

    @redirect_missing_row
    def publish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what publishing would change; publish on POST."""
        row = self._find_row(request, object_id)
        looked_at = request.POST.get("looked_at", "")  # the hash of what was shown
        options = {"looked_at": looked_at, "note": request.POST.get("note", "")}
        if done := self._commit_change(request, row, services.publish, **options):
            return done
        context = comparison.publish_context(request, row, mcp)
        button = _("Publish version %(number)d")
        if context["breaks"]:
            button = _("Publish version %(number)d although old calls break")
        context["button"] = button % {"number": context["next_number"]}
        if not context["is_served_already"]:
            context.update(self.publish_boxes(request, row))
        return self._render_page(request, row, "publish", _("Publish"), context)

    def publish_boxes(self, request: HttpRequest, row: Row) -> dict[str, Any]:
        """Return more context for the page that publishes."""
        return {}

    @redirect_missing_row
    def rollback_view(
        self, request: HttpRequest, object_id: str, number: int
    ) -> HttpResponse:
        """Show what an old version would change; publish it again on POST."""
        row = self._find_row(request, object_id)
        version = self._find_version(request, row, number)
        options = {
            "version": version,
            "note": request.POST.get("note", ""),
            "working_copy": "working_copy" in request.POST,
        }
        if done := self._commit_change(request, row, services.roll_back, **options):
            return done
        context = comparison.restoring(request, row, version, mcp)
        numbers = {"old": number, "number": context["next_number"]}
        button = _("Publish version %(old)d again as version %(number)d")
        context["button"] = button % numbers
        title = _("Roll back to version %(number)d") % {"number": number}
        return self._render_page(request, row, "publish", title, context)

    def _commit_change(
        self, request: HttpRequest, row: Row, act: Callable[..., object], **options: Any
    ) -> HttpResponse | None:
        """On POST, call a service; return None to show the page, with any refusal."""
        if request.method != "POST":
            return None
        try:
            act(author_of(request), row, number=number_of(request), **options)
        except PublicationRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
            # If somebody has deleted the row, this raises `Deleted`.
            self._find_row(request, str(row.pk))
            return None
        message = published_sentence(request, self._find_row(request, str(row.pk)))
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(page_url(row, "publish"))

    @redirect_missing_row
    def unpublish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask for confirmation; on POST take the row off the lists."""
        row = self._find_row(request, object_id)
        require_right(request.user, "publish")
        if done := self._commit_change(request, row, services.unpublish):
            return done
        context = {
            "sentences": comparison.unpublishing(row),
            "button": _("Take it off the list"),
            "number": 0 if row.published is None else row.published.number,
        }
        title = _("Unpublish")
        return self._render_page(request, row, "publish", title, context, "confirm")

    # -- looking back -------------------------------------------------------------

    @redirect_missing_row
    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        row = self._find_row(request, object_id)
        may_restore = has_right(request, "publish")
        context = history.history_context(row, may_restore=may_restore)
        title = _("History")
        return self._render_page(request, row, "history", title, context, "history")

    @redirect_missing_row
    def version_view(
        self, request: HttpRequest, object_id: str, number: int
    ) -> HttpResponse:
        """Show one version in full."""
        row = self._find_row(request, object_id)
        version = self._find_version(request, row, number)
        context = comparison.version_context(row, version, mcp)
        title = _("Version %(number)d") % {"number": number}
        return self._render_page(request, row, "history", title, context, "version")

    # -- stopping -----------------------------------------------------------------

    @redirect_missing_row
    def stop_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Stop at once on POST."""
        row = self._find_row(request, object_id)
        require_right(request.user, "stop")
        if request.method != "POST":
            # A GET follows if the user had to log in after pressing the button.
            return HttpResponseRedirect(page_url(row, "change"))
        with transaction.atomic():
            self._lock_row(request, row)
            if not stop_banner.stops_of_row(stop_banner.active_stops(request), row):
                services.stop_all(author_of(request), [row])
        message = _("Stopped: clients do not see it any more.")
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(page_url(row, "change"))

    # -- helpers --------------------------------------------------------------------

    def _find_row(
        self, request: HttpRequest, object_id: str, *, whole: bool = False
    ) -> Row:
        """Return the row; raise 403 if the user may not see it, 404 if there is none.

        `whole` also loads the published content.
        """
        rows = self.get_queryset(request).select_related("published")
        rows = rows.defer(None) if whole else rows
        # Django's own pages also accept any text as a key.
        key = keys.primary_key_of(self.model, object_id)
        row = None if key is None else rows.filter(pk=key).first()
        if not self.has_view_permission(request, row):
            raise PermissionDenied
        if row is None:
            deleted_rows.raise_if_deleted(request, self.model, key)
            raise comparison.missing_error(self.opts.verbose_name)
        return row

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """Name the user who deleted the row, if known, instead of Django's message."""
        key = keys.primary_key_of(self.model, object_id)
        try:
            deleted_rows.raise_if_deleted(request, self.model, key)
        except deleted_rows.Deleted as gone:
            return deleted_rows.to_the_list(self, request, str(gone))
        usual = super()._get_obj_does_not_exist_redirect  # type: ignore[misc]
        return cast("HttpResponse", usual(request, opts, object_id))

    def _lock_row(self, request: HttpRequest, row: Row) -> Row:
        """Return the row, read again and locked; raise if it was deleted meanwhile."""
        rows = self.model.rows().select_for_update()
        locked: Row | None = rows.filter(pk=row.pk).first()
        if locked is None:
            deleted_rows.raise_if_deleted(request, self.model, row.pk)
            raise comparison.missing_error(self.opts.verbose_name)
        return locked

    def _find_version(
        self, request: HttpRequest, row: Row, number: int
    ) -> DefinitionVersion:
        version = DefinitionVersion.objects.of(row).filter(number=number).first()
        if version is None:
            if not self.model.rows().filter(pk=row.pk).exists():
                # Deleting the row deleted its versions.
                deleted_rows.raise_if_deleted(request, self.model, row.pk)
            raise comparison.missing_error(_("version"))
        return version

    def _render_page(
        self,
        request: HttpRequest,
        row: Row,
        page: str,
        title: str,
        context: Mapping[str, Any],
        template: str = "publish",
    ) -> HttpResponse:
        vars(request)["current_app"] = self.admin_site.name
        both = {**row_page_context(self, request, row, page), "title": title, **context}
        return TemplateResponse(request, f"admin/mcp_app/{template}.html", both)


def author_of(request: HttpRequest) -> Person:
    """Return the user of a request; raise 403 if there is none."""
    user = request.user
    if not isinstance(user, AbstractBaseUser):
        raise PermissionDenied
    return user


def number_of(request: HttpRequest, name: str = "number") -> int:
    """Return the version number that the page showed as published; -1 if none came."""
    return keys.number_from(request.POST.get(name, ""), -1)
