"""Pages on which a row is compared, published, rolled back, stopped and started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from django.contrib import messages
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from mcp_app.admin.page import deleted, stop_banner
from mcp_app.admin.page.concurrency import LockingAdmin
from mcp_app.admin.page.deleted import told_if_deleted
from mcp_app.admin.page.header import frame, lacking, may, page_url, why_broken
from mcp_app.admin.publishing import comparison, history
from mcp_app.catalog.registry import mcp
from mcp_app.interface.rules import text_problem
from mcp_app.kinds.registered import is_guarded
from mcp_app.models import DefinitionRow, DefinitionVersion, PublishedRow
from mcp_app.models.demands import DEMANDS
from mcp_app.protocol.json_types import JsonObject
from mcp_app.publishing import publication
from mcp_app.publishing.overlays import reckon
from mcp_app.publishing.publication import PublicationRefused

Row = TypeVar("Row", bound=PublishedRow)

LONGEST_NOTE = 1_000


class PublishedAdmin(LockingAdmin[Row]):
    """What the pages of everything that is published share."""

    change_form_template = "admin/mcp_app/change_form.html"

    class Media:
        css = {"all": ["mcp_app/admin.css"]}

    def get_urls(self) -> list[URLPattern]:
        pages: Sequence[tuple[str, str, Callable[..., HttpResponse]]] = (
            ("publish", "", self.publish_view),
            ("unpublish", "", self.unpublish_view),
            ("rollback", "<int:number>/", self.rollback_view),
            ("version", "<int:number>/", self.version_view),
            ("stop", "", self.stop_view),
            ("start", "", self.start_view),
        )
        own = [
            path(
                f"<path:object_id>/{name}/{more}",
                self.admin_site.admin_view(view),
                name=f"mcp_app_{self.opts.model_name}_{name}",
            )
            for name, more, view in pages
        ]
        return [*own, *super().get_urls()]

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
            own = frame(self, request, row, "change")
            context.update({name: own[name] for name in ("strip", "tabs", "row")})
        context["may_publish"] = may(request, "publish")
        return super().render_change_form(request, context, *positional, **named)

    def save_related(
        self,
        request: HttpRequest,
        form: ModelForm[Row],
        formsets: Any,
        change: bool,
    ) -> None:
        super().save_related(request, form, formsets, change)
        if isinstance(form.instance, DefinitionRow):
            reckon(form.instance, mcp)

    def response_add(
        self, request: HttpRequest, obj: Row, post_url_continue: str | None = None
    ) -> HttpResponse:
        if "_publish" in request.POST:
            return HttpResponseRedirect(page_url(obj, "publish"))
        return super().response_add(request, obj, post_url_continue)

    def response_change(self, request: HttpRequest, obj: Row) -> HttpResponse:
        if "_publish" in request.POST:
            return HttpResponseRedirect(page_url(obj, "publish"))
        return super().response_change(request, obj)

    # -- comparing and publishing -------------------------------------------------

    @told_if_deleted
    def publish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show what publishing would do; a POST publishes."""
        row = self._row(request, object_id)
        if request.method == "POST":
            self._demand(request, "publish")
            return self._publish(request, row)
        context = comparison.context(request, row, mcp)
        context["button"] = self._button(context)
        return self._page(request, row, "publish", _("Publish"), context)

    def _button(self, context: Mapping[str, Any]) -> str:
        number = {"number": context["next_number"]}
        if context["breaks"]:
            return _("Publish version %(number)d although old calls break") % number
        return _("Publish version %(number)d") % number

    def _publish(self, request: HttpRequest, row: Row) -> HttpResponse:
        return self._committed(
            request,
            row,
            lambda: publication.publish(
                row,
                mcp,
                author=author_of(request),
                note=note_of(request),
                looked_at=request.POST.get("looked_at", ""),
                number=number_of(request),
            ),
            _("Published version %(number)d."),
        )

    @told_if_deleted
    def rollback_view(
        self, request: HttpRequest, object_id: str, number: int
    ) -> HttpResponse:
        """Show what an old version would change; a POST publishes it again."""
        row = self._row(request, object_id)
        version = self._version(request, row, number)
        if request.method != "POST":
            context = comparison.restoring(request, row, version, mcp)
            context["button"] = _(
                "Publish version %(old)d again as version %(number)d"
            ) % {"old": number, "number": context["next_number"]}
            title = _("Roll back to version %(number)d") % {"number": number}
            return self._page(request, row, "publish", title, context)
        self._demand(request, "publish")
        working_copy = "working_copy" in request.POST
        self._demand_for_content(request, row, version.read(), working_copy)
        said = _("Published version {old} again as version %(number)d.")
        return self._committed(
            request,
            row,
            lambda: publication.roll_back(
                row,
                version,
                mcp,
                author=author_of(request),
                note=note_of(request),
                number=number_of(request),
                working_copy=working_copy,
            ),
            said.format(old=number),
        )

    def _demand_for_content(
        self,
        request: HttpRequest,
        row: Row,
        content: JsonObject,
        working_copy: bool,
    ) -> None:
        """Demand the rights for what an old version changes besides the texts."""
        served = {} if row.published is None else row.published.read()
        if _demands(content) != _demands(served):
            self._demand(request, "grant")
        if not working_copy:
            return
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        now = row.working_content()
        if _demands(content) != _demands(now):
            self._demand(request, "grant")
        if _guarded(content) != _guarded(now):
            self._demand(request, "behind")

    def _committed(
        self,
        request: HttpRequest,
        row: Row,
        act: Callable[[], DefinitionVersion],
        said: str,
    ) -> HttpResponse:
        """Do it, hold until every process knows, and say what was done."""
        try:
            with transaction.atomic():
                version = act()
                sentence = said % {"number": version.number}
                self.log_change(request, row, f"{sentence} {version.note}".strip())
                fresh = self.model._default_manager.get(pk=row.pk)
                if isinstance(fresh, DefinitionRow):
                    reckon(fresh, mcp)
                self._hold()
        except PublicationRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())
        done = _("Version %(number)d is published: every worker serves it.")
        if not fresh.enabled or stop_banner.holding(request, fresh):
            done = _(
                "Version %(number)d is published. It is stopped, so clients do not see "
                "it until somebody starts it again."
            )
        self.message_user(request, done % {"number": version.number}, messages.SUCCESS)
        return HttpResponseRedirect(page_url(row, "publish"))

    @told_if_deleted
    def unpublish_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Ask, then take the row off the lists."""
        row = self._row(request, object_id)
        self._demand(request, "publish")
        if request.method != "POST":
            context = {
                "sentences": comparison.unpublishing(row),
                "button": _("Take it off the list"),
                "number": 0 if row.published is None else row.published.number,
            }
            return self._page(
                request, row, "publish", _("Unpublish"), context, "confirm"
            )
        try:
            with transaction.atomic():
                publication.unpublish(row, number=number_of(request))
                self.log_change(request, row, _("Taken off the lists."))
                self._hold()
        except PublicationRefused as refused:
            self.message_user(request, refused.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())
        said = _("Clients do not see it any more. Its versions are kept.")
        self.message_user(request, said, messages.SUCCESS)
        return HttpResponseRedirect(page_url(row, "publish"))

    # -- looking back -------------------------------------------------------------

    @told_if_deleted
    def history_view(
        self,
        request: HttpRequest,
        object_id: str,
        extra_context: Mapping[str, Any] | None = None,
    ) -> HttpResponse:
        row = self._row(request, object_id)
        context = history.context(row, may_restore=may(request, "publish"))
        return self._page(request, row, "history", _("History"), context, "history")

    @told_if_deleted
    def version_view(
        self, request: HttpRequest, object_id: str, number: int
    ) -> HttpResponse:
        """Show one version as a whole."""
        row = self._row(request, object_id)
        context = comparison.looking(self._version(request, row, number))
        title = _("Version %(number)d") % {"number": number}
        return self._page(request, row, "history", title, context, "version")

    # -- stopping and starting ----------------------------------------------------

    @told_if_deleted
    def stop_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Stop at once, without a question; a GET asks, for those without a form."""
        return self._switched(request, object_id, on=False)

    @told_if_deleted
    def start_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Say what comes back, and ask once."""
        return self._switched(request, object_id, on=True)

    def _switched(
        self, request: HttpRequest, object_id: str, *, on: bool
    ) -> HttpResponse:
        row = self._row(request, object_id)
        self._demand(request, "stop")
        if request.method != "POST":
            context = comparison.switching(row, on=on)
            return self._page(
                request, row, "change", str(context["title"]), context, "confirm"
            )
        with transaction.atomic():
            self._lock(request, row)
            row.rows().filter(pk=row.pk).switch(on)
            self.log_change(request, row, _("Started.") if on else _("Stopped."))
            self._hold()
        said = _("Started: every worker serves it.")
        if not row.served_hash():
            said = _("Started. It is not published, so clients do not see it yet.")
        elif held := stop_banner.holding(request, row):
            said = _("Its switch is on. It stays stopped: %(stops)s")
            said %= {"stops": ", ".join(dict.fromkeys(each.what for each in held))}
        level = messages.SUCCESS
        if not on:
            said = _("Stopped: no worker serves it any more.")
        elif why := why_broken(row):
            said = _("Started. %(broken)s") % {"broken": comparison.stays_broken(why)}
            level = messages.WARNING
        self.message_user(request, said, level)
        return HttpResponseRedirect(page_url(row, "change"))

    # -- helpers --------------------------------------------------------------------

    def _row(self, request: HttpRequest, object_id: str, *, whole: bool = False) -> Row:
        """Return the row; 403 where the person may not see it, 404 where it is not.

        `whole` is with what is published of it.
        """
        rows = self.get_queryset(request).select_related("published")
        rows = rows.defer(None) if whole else rows
        # Django's own pages take any text as a key, too.
        key = deleted.key_of(self.model, object_id)
        found = None if key is None else rows.filter(pk=key).first()
        if not self.has_view_permission(request, found):
            raise PermissionDenied
        if found is None:
            deleted.demand_row(request, self.model, key)
            raise comparison.gone(self.opts.verbose_name)
        return found

    def _get_obj_does_not_exist_redirect(
        self, request: HttpRequest, opts: Any, object_id: str
    ) -> HttpResponse:
        """Say who deleted it where Django says that it perhaps was."""
        key = deleted.key_of(self.model, object_id)
        try:
            deleted.demand_row(request, self.model, key)
        except deleted.Deleted as gone:
            return deleted.to_the_list(self, request, str(gone))
        usual = super()._get_obj_does_not_exist_redirect  # type: ignore[misc]
        return cast("HttpResponse", usual(request, opts, object_id))

    def _lock(self, request: HttpRequest, row: Row) -> Row:
        """Return the row as it is now, locked; raise where it is deleted meanwhile."""
        locked: Row | None
        locked = self.model.rows().select_for_update().filter(pk=row.pk).first()
        if locked is None:
            deleted.demand_row(request, self.model, row.pk)
            raise comparison.gone(self.opts.verbose_name)
        return locked

    def _version(
        self, request: HttpRequest, row: Row, number: int
    ) -> DefinitionVersion:
        versions = DefinitionVersion.objects.of(row)
        found = versions.filter(number=number).first()
        if found is None:
            if not self.model.rows().filter(pk=row.pk).exists():
                # Its versions go with it.
                deleted.demand_row(request, self.model, row.pk)
            raise comparison.gone(_("version"))
        return found

    def _demand(self, request: HttpRequest, right: str) -> None:
        if not may(request, right):
            raise PermissionDenied(lacking(right))

    def _page(
        self,
        request: HttpRequest,
        row: Row,
        page: str,
        title: str,
        context: Mapping[str, Any],
        template: str = "publish",
    ) -> HttpResponse:
        vars(request)["current_app"] = self.admin_site.name
        both = {**frame(self, request, row, page), "title": title, **context}
        return TemplateResponse(request, f"admin/mcp_app/{template}.html", both)


def _demands(content: JsonObject) -> list[object]:
    return [content.get(name) or "" for name in DEMANDS]


def _guarded(content: JsonObject) -> object:
    """Return what stands behind, if to change it needs a right."""
    kind = content.get("kind")
    return (kind, content.get("config")) if kind and is_guarded(kind) else None


def author_of(request: HttpRequest) -> AbstractBaseUser:
    """Return who is doing it."""
    user = request.user
    if not isinstance(user, AbstractBaseUser):
        raise PermissionDenied
    return user


def number_of(request: HttpRequest, name: str = "number") -> int:
    """Return the version that the page showed as the one that clients see."""
    return comparison.number_from(request.POST.get(name, ""), -1)


def note_of(request: HttpRequest) -> str:
    """Return the note for the history; `PublicationRefused` where it cannot be kept."""
    note = request.POST.get("note", "").strip()
    if len(note) > LONGEST_NOTE:
        raise PublicationRefused(
            _("The note has %(count)d characters; at most %(most)d are kept.")
            % {"count": len(note), "most": LONGEST_NOTE}
        )
    if problem := text_problem(note, lines=True):
        raise PublicationRefused(problem)
    return note
