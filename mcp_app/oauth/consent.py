"""The consent page: the checked request, the choices, and the words for them."""

from __future__ import annotations

import secrets as random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.models import AbstractBaseUser
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from mcp_app.account import connected_apps
from mcp_app.account.forms import RightsChoice, visible_tag_counts
from mcp_app.account.presentation import open_server
from mcp_app.account.views import own_page
from mcp_app.auth.connections import Client, Grant, PageUsed, allows_sign_in
from mcp_app.auth.principals import outage_answer
from mcp_app.auth.resources import slug_of_resource
from mcp_app.conf import mcp_settings, secret_keys
from mcp_app.interface.server import DEFAULT_SLUG
from mcp_app.models import AccessToken
from mcp_app.models.fields import digest
from mcp_app.models.tokens import Secret
from mcp_app.oauth.clients import Refusal, find_client
from mcp_app.oauth.endpoints import issuer_of
from mcp_app.process.rates import MinuteLimit
from mcp_app.process.visible import visible_to
from mcp_app.protocol.cursors import Sealer
from mcp_app.protocol.errors import Unavailable
from mcp_app.protocol.oauth import requests
from mcp_app.protocol.oauth.addresses import is_on_own_computer, with_answer

LASTS_S: Final = 600
"""A page that is older is refused."""
MAX_SEALED_LENGTH: Final = 160 * 1024
"""Enough for the longest request twice, even if JSON writes each character as six."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request that was checked; the page sends it back with the person's answer.

    `query` is that of the request's address, for a person who signs in as another user.
    `once` is random: by it the page can be used only once.
    """

    client: Client
    slug: str
    challenge: str
    state: str
    may_ask: str
    query: str
    once: str
    asked_at: int

    def seal_for_user(self, user: AbstractBaseUser) -> str:
        """Return the question as a text that only this user's page can send back."""
        return _consent_sealer().seal(asdict(self), str(user.pk).encode())

    @classmethod
    def open_sealed(cls, text: str, user: AbstractBaseUser) -> Question | None:
        """Return what a page sent back; None if it is another user's or too old."""
        members = _consent_sealer().open(text, str(user.pk).encode())
        if members is None or time.time() - members["asked_at"] > LASTS_S:
            return None
        client = Client(**members.pop("client"))
        return cls(client=client, **members)


def _consent_sealer() -> Sealer:
    return Sealer(secret_keys(), "consent", size=MAX_SEALED_LENGTH)


class ConsentForm(RightsChoice):
    """What the program may do, at most what it asked for, and until when."""

    sealed = forms.CharField(widget=forms.HiddenInput)
    end_others = forms.BooleanField(
        label=gettext_lazy("End its other connections"), required=False
    )

    def __init__(self, *positional: Any, with_others: bool, **options: Any) -> None:
        super().__init__(*positional, **options)
        if not with_others:
            del self.fields["end_others"]


def program_words(client: Client) -> dict[str, str]:
    """Return the words about a program: what is proved, and what it claims.

    `place` is the proved host that gets the answer, or a program on this computer.
    """
    is_local = is_on_own_computer(client.redirect_uri)
    place = _("a program on this computer") if is_local else client.redirect_host
    claim = _("“%(name)s”, says %(host)s")
    if not client.host:
        claim = _("It calls itself “%(name)s”. Nobody has checked that.")
    elif is_local:
        claim = _("It says that it is “%(name)s” of %(host)s. Nobody can check that.")
    claim %= {"name": client.name, "host": client.host}
    warning = ""
    if is_local:
        warning = _(
            "The sign-in code goes to a program on this computer; any program here can"
            " receive it. If you did not just start signing in there, choose Cancel. Do"
            " not send the address that the browser shows afterwards to anybody:"
            " whoever asks for it wants to sign in as you."
        )
    goes_to = client.redirect_host or client.redirect_uri.partition(":")[0] + ":"
    return {"place": place, "claim": claim, "goes_to": goes_to, "warning": warning}


# -- consent views ---------------------------------------------------------------------
# The page on which a person lets a program in, and the pages for refusals.
#
# A program gets nothing before the person pressed a button: anybody can register a
# program and send wrong requests, and a redirect would turn the site into an open
# redirector (RFC 9700, section 4.11.2).  The answer is a page with a link that the
# browser follows by itself: a site's `form-action 'self'` would block a redirect.

DAY_S: Final = 86_400

page_limit: Final = MinuteLimit(60)
"""Limits how many questions one person opens."""


def shows_refusals(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Make a view show a refusal, or an outage of the database or the process."""

    @wraps(view)
    def view_wrapper(request: HttpRequest) -> HttpResponse:
        try:
            return view(request)
        except Refusal as refusal:
            return _refusal_page(request, refusal)
        except Exception as error:
            away = error if isinstance(error, Unavailable) else outage_answer(error)
            if away is None:
                raise
        sentence = _("This is not available at the moment. Try again in a minute.")
        response = _refusal_page(request, Refusal(sentence, status=503))
        response["Retry-After"] = away.headers.get("Retry-After", "5")
        return response

    return view_wrapper


@own_page
@shows_refusals
@require_safe
def authorize(request: HttpRequest) -> HttpResponse:
    """Ask the person whether a program may act as them."""
    issuer = issuer_of(request)
    user: Any = request.user
    if request.headers.get("Sec-Fetch-Dest", "document") != "document":
        raise Refusal(_("This page must be opened in a window of its own."))
    if not page_limit.count_attempt(str(user.pk), time.monotonic()):
        sentence = _("You asked for this page too often. Try again in a minute.")
        raise Refusal(sentence, status=429)
    question = _read_question(request, user, issuer)
    return _render_page(request, "consent", _page_context(request, user, question))


@own_page
@shows_refusals
@require_POST
@sensitive_post_parameters("sealed")
@sensitive_variables()
def receive_consent(request: HttpRequest) -> HttpResponse:
    """Take the decision of the person, and send it to the program."""
    issuer = issuer_of(request)
    user: Any = request.user
    question = Question.open_sealed(request.POST.get("sealed", ""), user)
    if question is None:
        raise Refusal(_page_used_message())
    if "sign_out" in request.POST:
        logout(request)
        return redirect_to_login(f"{reverse('mcp_oauth:authorize')}?{question.query}")
    if "cancel" in request.POST:
        return _answer_program(request, question, {"error": "access_denied"}, issuer)
    try:
        return _grant_access(request, user, question, issuer)
    except PageUsed:
        raise Refusal(_page_used_message()) from None


def _page_used_message() -> str:
    return _("This page was used already, or is too old. Start again in the program.")


@sensitive_variables()
def _grant_access(
    request: HttpRequest, user: AbstractBaseUser, question: Question, issuer: str
) -> HttpResponse:
    page = _page_context(request, user, question)
    form: ConsentForm = page["form"]
    if not form.is_valid():
        return _render_page(request, "consent", page)
    # If a page is sent twice, it allows once.  MariaDB refuses UUIDs without a version.
    page_id = UUID(digest(f"{user.pk} {question.once}")[:32], version=5)
    grant = Grant(
        user=user,
        server=page["server"],
        client=question.client,
        challenge=question.challenge,
        may_ask=question.may_ask,
        may=form.cleaned_data["may"],
        tags=form.chosen_tags(),
        until=form.chosen_end(),
    )
    code = connected_apps.allow_app(grant, page_id)
    if form.cleaned_data.get("end_others"):
        connections = connected_apps.connections_of(user, question.client.client_id)
        # If the page is sent twice, the app that it made is not ended.
        tokens = [each.token for each in connections if each.token.made_with != page_id]
        connected_apps.end_connected_apps(user, tokens)
    return _answer_program(request, question, {"code": code}, issuer)


# -- the question ----------------------------------------------------------------------


def _read_question(
    request: HttpRequest, user: AbstractBaseUser, issuer: str
) -> Question:
    query = request.META.get("QUERY_STRING", "")
    try:
        authorization = requests.read_authorization(query)
    except requests.OAuthError as error:
        raise Refusal(error.description) from None
    client = find_client(authorization, user)
    try:
        requests.check_before_resource(authorization)
        slug = _requested_slug(authorization, issuer)
        requests.check_after_resource(authorization)
    except requests.OAuthError as error:
        answer = {"error": error.error, "error_description": error.description}
        link = _answer_address(client, authorization.state, issuer, answer)
        raise Refusal(error.description, link) from None
    may = AccessToken.May
    return Question(
        client=client,
        slug=slug,
        challenge=authorization.challenge,
        state=authorization.state,
        may_ask=may.CHANGE if requests.CHANGE in authorization.scope else may.READ,
        query=query,
        once=random.token_hex(16),
        asked_at=int(time.time()),
    )


def _requested_slug(authorization: requests.AuthorizationRequest, issuer: str) -> str:
    if not authorization.resources:
        # Revision 2025-03-26 has no resources.
        slug: str | None = DEFAULT_SLUG
    elif len(set(authorization.resources)) > 1:
        raise requests.OAuthError(
            "invalid_target", "One resource at a time can be asked for."
        )
    else:
        slug = slug_of_resource(authorization.resources[0], issuer)
    server = open_server(slug)
    if server is None or not allows_sign_in(server):
        raise requests.OAuthError(
            "invalid_target", "resource must be a server of this site to sign in to."
        )
    return server.slug


def _page_context(
    request: HttpRequest, user: Any, question: Question
) -> dict[str, Any]:
    server = open_server(question.slug)
    if server is None or not allows_sign_in(server):
        # The server may have been deleted or closed meanwhile.
        raise Refusal(_("This server lets nobody sign in any more."))
    visible = visible_to(user, question.slug)
    if visible is None:
        raise Refusal(_("You may not use this server, so no program can as you."))
    connections = connected_apps.connections_of(user, question.client.client_id)
    form = ConsentForm(
        request.POST if request.method == "POST" else None,
        may_ask=question.may_ask,
        tags=visible_tag_counts(visible),
        with_others=bool(connections),
        initial={"sealed": question.seal_for_user(user)},
    )
    form.tell_what_is_missing(visible)
    reading = sum(tool.only_reads for tool in visible.tools)
    used = [each.token.used for each in connections if each.token.used is not None]
    return {
        "form": form,
        "server": server,
        "words": program_words(question.client),
        "person": user.get_username(),
        "figures": {
            "tools": len(visible.tools),
            "reading": reading,
            "changing": len(visible.tools) - reading,
            "prompts": visible.prompts,
            "resources": visible.resources,
            "events": visible.events,
        },
        "others": {"count": len(connections), "used": max(used, default=None)},
        "idle_days": max(1, round(mcp_settings.limits.oauth_idle / DAY_S)),
    }


# -- what the person gets --------------------------------------------------------------


@sensitive_variables()
def _answer_program(
    request: HttpRequest, question: Question, answer: dict[str, str], issuer: str
) -> HttpResponse:
    """Send an answer to the program, by a page with a link to it."""
    # With DEBUG, Django logs the context if a template looks for a missing variable.
    link = Secret(_answer_address(question.client, question.state, issuer, answer))
    words = program_words(question.client)
    context = {"link": link, "words": words, "allowed": "code" in answer}
    return _render_page(request, "answer", context)


def _answer_address(
    client: Client, state: str, issuer: str, answer: dict[str, str]
) -> str:
    parameters = {**answer, **({"state": state} if state else {}), "iss": issuer}
    return with_answer(client.redirect_uri, parameters)


def _refusal_page(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    program = urlsplit(refusal.link).netloc or _("the program")
    context = {"sentence": refusal.sentence, "link": refusal.link, "place": program}
    response = _render_page(request, "refused", context)
    response.status_code = refusal.status
    return response


def _render_page(
    request: HttpRequest, name: str, context: dict[str, Any]
) -> HttpResponse:
    response = render(request, f"mcp_app/oauth/{name}.html", context)
    # Programs get no referrer.  Without a referrer policy of “same-origin”, a browser
    # would send the form with an unknown origin, which is refused.
    response["Referrer-Policy"] = "same-origin"
    _forbid_frames(request, response)
    return response


def _forbid_frames(request: HttpRequest, response: Any) -> None:
    """Forbid frames, in the site's own policy if its middleware sends one."""
    policy = getattr(settings, "SECURE_CSP", None)
    if "csp.middleware" in sys.modules and hasattr(request, "csp_nonce"):
        # The package django-csp does not change a response that has the header.
        response._csp_replace = {"frame-ancestors": ["'none'"]}
    elif policy and hasattr(request, "_csp_nonce"):
        # Django 6: its middleware has seen the request.  Without it, no policy is sent.
        response._csp_config = {**policy, "frame-ancestors": ["'none'"]}
    else:
        response["Content-Security-Policy"] = "frame-ancestors 'none'"
