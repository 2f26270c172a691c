"""A form for each kind of definition; the kind is chosen first and never changes."""

from __future__ import annotations

import logging
from typing import Any, Final, TypeVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from mcp_app.admin.definitions.read_only import READ, ReadOnlyFields
from mcp_app.admin.editors.rows import SHOW
from mcp_app.admin.forms import DEFINITIONS, ConfigForm, form_of, kinds_for
from mcp_app.admin.forms.fieldsets import Fieldset, fieldsets_of
from mcp_app.admin.page.concurrency import LockingAdmin, PageViews
from mcp_app.admin.page.header import page_url, render_page
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.page.wording import EVERY
from mcp_app.interface.rules import visible
from mcp_app.kinds import Kind, Missing
from mcp_app.kinds.registry import OURS
from mcp_app.models import DefinitionRow

Row = TypeVar("Row", bound=DefinitionRow)

logger = logging.getLogger("mcp_app.kinds")

FIRST: Final = ("query", "http")
"""The kinds that are offered before others."""
FORM_PARTS: Final = (
    "arguments",
    "config",
    "from_code",
    "input_schema",
    "now",
    "preview",
    "suggestions",
)
"""The fields that a page may render again while somebody fills in the form."""


def _find_missing(kind: Kind) -> Missing | None:
    """Return why a kind cannot be used at this site; None if it can."""
    try:
        missing = kind.missing()
        # The kind of a site may return a plain tuple.
        return None if missing is None else Missing(*missing)
    except Exception as error:
        logger.exception("The kind %s has failed.", type(kind).__name__)
        return Missing(_("This kind has failed: %(error)r") % {"error": error}, "")


class KindAdmin(ReadOnlyFields, LockingAdmin[Row]):
    """Chooses the form and the fields by the kind of the row."""

    def kind_of_form(self, request: HttpRequest, obj: Row | None) -> str:
        """Return the kind of the row or request; the first kind if none is given."""
        if obj is not None:
            return obj.kind
        kinds = kinds_for(self.model)
        kind = request.GET.get("kind") or request.POST.get("kind")
        return kind if kind and kind in kinds else next(iter(kinds))

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> Any:
        return [*super().get_readonly_fields(request, obj), READ["config"]]

    def get_fieldsets(
        self, request: HttpRequest, obj: Row | None = None
    ) -> list[Fieldset]:
        form = form_of(self.model, self.kind_of_form(request, obj))
        begun = {name: request.GET[name] for name in ("model",) if name in request.GET}
        behind = form.kind_fields(begun if obj is None else obj.json("config"))
        reads = obj is not None and not self.has_change_permission(request, obj)
        new_names = dict(READ) if reads else {}
        if form.KIND not in OURS or issubclass(form, ConfigForm):
            # Show read-only fields of a site's own form as one: the config.
            keys = {*behind.fields, *behind.more} - {*form.BESIDE}
            fixed = keys if reads else keys & {*self.get_readonly_fields(request, obj)}
            new_names |= dict.fromkeys(fixed, READ["config"])
        fieldsets: list[Fieldset] = []
        for heading, about in fieldsets_of(self.model, behind, obj):
            names = [new_names.get(str(name), str(name)) for name in about["fields"]]
            fieldsets.append((heading, {**about, "fields": [*dict.fromkeys(names)]}))
        return fieldsets

    def get_form(
        self,
        request: HttpRequest,
        obj: Row | None = None,
        change: bool = False,
        **options: Any,
    ) -> type[ModelForm[Row]]:
        form = form_of(self.model, self.kind_of_form(request, obj))
        fixed = self.get_readonly_fields(request, obj)
        # A subclass with None for a declared field has no such field.
        hidden = {name: None for name in fixed if name in form.declared_fields}
        words = {**EVERY, **form.WORDS}
        texts = {READ.get(name, name): text for name, text in words.items()} | words
        options["labels"] = {name: label for name, (label, _help) in texts.items()}
        options["help_texts"] = {name: help_ for name, (_label, help_) in texts.items()}
        members = {**hidden, "user": request.user}
        options["form"] = type(form.__name__, (form,), members)
        return super().get_form(request, obj, change, **options)

    def add_view(
        self,
        request: HttpRequest,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        kinds = kinds_for(self.model)
        lacks_kind = request.method == "GET" and request.GET.get("kind") not in kinds
        if lacks_kind and self.has_add_permission(request):
            title = _("Add %(what)s") % {"what": self.opts.verbose_name}
            # The kinds in `FIRST` come first; all others keep their order.
            keys = sorted(kinds, key=lambda key: key not in FIRST)
            offers = [self.offer_of_kind(request, key, kinds[key]) for key in keys]
            context = {"offers": offers, **(extra_context or {})}
            return render_page(self, request, "choose_kind", title, context)
        return super().add_view(request, form_url, extra_context)

    def offer_of_kind(
        self, request: HttpRequest, key: str, kind: Kind
    ) -> dict[str, Any]:
        """Return a kind to choose, with the links to its empty forms.

        `reason` says why the kind is not available; `line` is a text to send to a
        developer.
        """
        starts = []
        for label, values in form_of(self.model, key).starts():
            query = {**request.GET.dict(), "kind": key, **values}
            starts.append((label, f"?{urlencode(query)}"))
        reason, line = _find_missing(kind) or ("", "")
        return {
            "starts": starts,
            "name": kind.name,
            "example": kind.examples[DEFINITIONS[self.model]],
            "reason": reason,
            "line": line,
        }

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        *positional: Any,
        **options: Any,
    ) -> HttpResponse:
        context["show_save_and_add_another"] = context["show_save_and_continue"] = False
        context["may_try"] = has_right(request, "try")
        return super().render_change_form(request, context, *positional, **options)

    def response_post_save_add(
        self, request: HttpRequest, obj: Row
    ) -> HttpResponseRedirect:
        return self.response_post_save_change(request, obj)

    def response_post_save_change(
        self, request: HttpRequest, obj: Row
    ) -> HttpResponseRedirect:
        """Redirect to the row's form, or to *Try it* or *Publish*."""
        if not self.has_view_permission(request, obj):
            return super().response_post_save_change(request, obj)
        page = "try" if "_try" in request.POST else "change"
        # After an upload, show the replaced content on the page *Publish*.
        page = "publish" if "zip" in request.FILES else page
        return HttpResponseRedirect(page_url(obj, page))

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        initial = super().get_changeform_initial_data(request)
        initial.pop("kind", None)
        return initial

    def save_model(
        self, request: HttpRequest, obj: Row, form: Any, change: bool
    ) -> None:
        form.keep_uploads()
        super().save_model(request, obj, form, change)
        if form.left_out:
            files = visible(", ".join(form.left_out))
            text = _("Not taken: %(files)s.") % {"files": files}
            self.message_user(request, text, messages.WARNING)

    def page_views(self) -> PageViews:
        page = ("preview", self.preview_view)
        pages = {"preview/": page, "<path:object_id>/preview/": page}
        return {**pages, **super().page_views()}

    def preview_view(
        self, request: HttpRequest, object_id: str | None = None
    ) -> HttpResponse:
        """Render the field `part` with the sent data; save nothing.

        Needs the permission to save the form.
        """
        obj = None if object_id is None else self.get_object(request, object_id)
        if object_id is not None and obj is None:
            raise Http404
        if obj is None:
            may_save = self.has_add_permission(request)
        else:
            may_save = self.has_change_permission(request, obj)
        if not may_save or request.method != "POST":
            raise PermissionDenied
        part = request.GET.get("part", "")
        if not part:
            # Before saving, the script asks whether the user is still logged in.
            return HttpResponse()
        form_class = self.get_form(request, obj, change=obj is not None)
        typed = request.POST.copy()
        # A form with this input is shown again, and never saved.
        typed[f"{SHOW}part"] = part
        form = form_class(typed, request.FILES, instance=obj)
        form.full_clean()
        if part not in FORM_PARTS or part not in form.fields:
            raise Http404
        return HttpResponse(str(form[part]))
