"""The admin pages that make, replace and revoke access tokens."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin.helpers import AdminErrorList, AdminForm
from django.core.exceptions import PermissionDenied
from django.forms.widgets import Media, Script
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST

from mcp_app.account import connected_apps, presentation, token_issuance
from mcp_app.account.forms import AnyonesTokenForm, NewTokenForm
from mcp_app.account.views import forbid_caching, replace_once, show_once
from mcp_app.admin.page.concurrency import PageViews, SettledAdmin
from mcp_app.admin.page.rights import has_right
from mcp_app.admin.page.unfold import FORM_STYLES
from mcp_app.models import AccessToken, Server

NOT_YOURS: Final = gettext_lazy("Only its owner can replace a token.")
TOKEN_MEDIA: Final = Media(
    css={"all": [*FORM_STYLES, "mcp_app/admin.css"]},
    js=[Script("mcp_app/copy.js", defer=True)],  # type: ignore[list-item]
)
FIELDSETS: Final[list[tuple[Any, dict[str, list[str]]]]] = [
    (None, {"fields": ["name", "servers", "may", "ends", "until"]}),
    (
        gettext_lazy("Limits by network, tag and tool"),
        {"fields": ["networks", "tags", "tools"], "classes": ["collapse"]},
    ),
]


class TokenPages(SettledAdmin[AccessToken]):
    """The pages of tokens other than the list and the form of one token."""

    class Media:
        css = {"all": ["mcp_app/admin.css"]}

    def page_views(self) -> PageViews:
        return {
            "<int:key>/replace/": ("replace", self.replace_view),
            "<int:key>/revoke/": ("revoke", require_POST(self.revoke_view)),
            "<int:key>/narrow/": ("narrow", require_POST(self.narrow_view)),
            "<int:key>/forget/": ("forget", require_POST(self.forget_view)),
            **super().page_views(),
        }

    @sensitive_variables()
    @method_decorator(sensitive_post_parameters("public_key"))
    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Ask for the details of a new token, make it, and show it once."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = self._new_token_form(request)
        if not form.is_valid():
            return self._form_page(request, form)
        maker = request.user if form.cleaned_data.get("colleague") else None
        issue = partial(
            token_issuance.issue_token, maker=maker, **form.token_arguments()
        )
        return show_once(request, form, issue, partial(self._render_page, request))

    def _new_token_form(self, request: HttpRequest) -> NewTokenForm:
        """Return the form; superusers can also choose a service user.

        Users who manage tokens can make a link, if the site has the page for it.
        """
        servers = presentation.open_servers()
        if request.user.has_perm("mcp_app.view_server"):
            # Offer unpublished servers, too.
            servers = Server.objects.defer("published__content")
        data = request.POST if request.method == "POST" else None
        form = AnyonesTokenForm(data, user=request.user, servers=servers)  # type: ignore[arg-type]
        if not getattr(request.user, "is_superuser", False):
            del form.fields["service_user"]
        if not (may_manage_tokens(request) and own_tokens_url(request)):
            del form.fields["colleague"]
        for name in ("name", "networks", "tags", "tools", "service_user", "colleague"):
            if name in form.fields:
                form.fields[name].widget.attrs["class"] = "vTextField"
        return form

    def _form_page(self, request: HttpRequest, form: NewTokenForm) -> HttpResponse:
        fieldsets = list(FIELDSETS)
        for name in ("public_key", "colleague", "service_user"):
            if name in form.fields:
                fieldsets.append((None, {"fields": [name]}))
        return self._render_page(
            request,
            "add",
            title=_("Make an access token"),
            form=form,
            errors=AdminErrorList(form, []),
            adminform=AdminForm(form, fieldsets, {}, model_admin=self),
            media=self.media + TOKEN_MEDIA,
        )

    @sensitive_variables()
    def replace_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Ask when the old token ends, make the new one, and show it once."""
        row = self._find_token(request, key)
        if not self.is_owner_or_superuser(request, row):
            # The new token authenticates as its owner, so nobody else may see it.
            raise PermissionDenied(NOT_YOURS)
        render_page = partial(self._render_page, request)
        return replace_once(request, row, _change_url(row), render_page)

    def revoke_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Revoke a token or end an app; no worker accepts it once this has answered."""
        row = self._find_token(request, key)
        token_issuance.end_token(request.user, row)  # type: ignore[arg-type]
        message = presentation.end_words(row)
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(_change_url(row))

    def narrow_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Limit an app to reading; only its owner can allow more again."""
        row = self._find_token(request, key)
        if not row.is_app:
            raise Http404(_("This is no connected app."))
        if connected_apps.narrow_to_reading(request.user, row):  # type: ignore[arg-type]
            message = _("“%(app)s” may only look things up from now on.")
            level = messages.SUCCESS
        else:
            level = messages.WARNING
            message = _(
                "Nothing was changed: “%(app)s” has ended, or may only look things up"
                " already."
            )
        self.message_user(request, message % {"app": row}, level)
        return HttpResponseRedirect(_change_url(row))

    def forget_view(self, request: HttpRequest, key: int) -> HttpResponse:
        """Delete the row of a token that has ended."""
        row = self._find_token(request, key)
        if not row.has_ended(timezone.now()):
            message = _("“%(token)s” has not ended. Delete it first.") % {"token": row}
            self.message_user(request, message, messages.ERROR)
            return HttpResponseRedirect(_change_url(row))
        token_issuance.forget_token(request.user, row)  # type: ignore[arg-type]
        message = _("“%(token)s” is not in the list any more.") % {"token": row}
        self.message_user(request, message, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:mcp_app_accesstoken_changelist"))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        # Deleting the row would not close the streams opened with the token.
        raise Http404(_("A token is deleted on its own page."))

    def is_owner_or_superuser(self, request: HttpRequest, row: AccessToken) -> bool:
        """Return whether the user is the owner of a token, or a superuser."""
        is_owner: bool = row.user_id == request.user.pk
        return is_owner or bool(getattr(request.user, "is_superuser", False))

    def _find_token(self, request: HttpRequest, key: int) -> AccessToken:
        """Return a token that the user may see; raise 403 or 404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_queryset(request).filter(pk=key).first()
        if row is None:
            raise Http404(_("This access token does not exist any more."))
        return row

    def _render_page(
        self, request: HttpRequest, name: str, **context: object
    ) -> HttpResponse:
        """Render a page at once, and forbid caches to store it."""
        page_context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": TOKEN_MEDIA,
            **context,
        }
        response = render(request, f"admin/mcp_app/token_{name}.html", page_context)
        forbid_caching(response)
        return response


def may_manage_tokens(request: HttpRequest) -> bool:
    """Return whether the user may see and delete everyone's tokens."""
    return has_right(request, token_issuance.MANAGE)


def own_tokens_url(request: HttpRequest) -> str:
    """Return the URL of the users' own page; "" if the site has none."""
    try:
        return request.build_absolute_uri(reverse("mcp_account:tokens"))
    except NoReverseMatch:
        return ""


def _change_url(row: AccessToken) -> str:
    return reverse("admin:mcp_app_accesstoken_change", args=[row.pk])
