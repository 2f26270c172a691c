"""Which program asks to be let in: one that registered, or one with a document."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _

from mcp_app.auth.connections import Client
from mcp_app.auth.oauth_settings import oauth_settings
from mcp_app.conf import secrets
from mcp_app.interface.rules import visible
from mcp_app.oauth.documents import NotFetched, documents
from mcp_app.protocol.oauth.authorization import AuthorizationRequest
from mcp_app.protocol.oauth.documents import ClientDocument, is_document_url
from mcp_app.protocol.oauth.errors import OAuthError
from mcp_app.protocol.oauth.redirects import (
    is_same_redirect,
    redirect_host,
    redirect_problem,
)
from mcp_app.protocol.oauth.registration import Registration, registration_of
from mcp_app.protocol.oauth.texts import CLIENT

REFRESH: Final = "refresh_token"


class Refusal(Exception):
    """What a person is shown instead of the question.

    `link` leads back to the program, "" where its answer would go is not known.
    """

    def __init__(self, sentence: str, link: str = "", status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence, self.link, self.status = sentence, link, status


def find_client(request: AuthorizationRequest, user: AbstractBaseUser) -> Client:
    """Return the program that asks; raise `Refusal`.

    A document is fetched where the id is the URL of one.
    """
    known = _known(request.client_id, user)
    redirect = request.redirect_uri
    if not redirect:
        raise Refusal(_("The program did not say where its answer goes."))
    # A registration keeps what was allowed when it was made.
    problem = redirect_problem(redirect, oauth_settings().schemes)
    named = any(is_same_redirect(each, redirect) for each in known.redirects)
    if problem is not None or not named:
        raise Refusal(
            _(
                "The program wants its answer at %(where)s, which is none of the"
                " addresses that it may name here."
            )
            % {"where": visible(redirect)}
        )
    host = known.host if isinstance(known, ClientDocument) else ""
    _check_let_in(known, host)
    return Client(
        client_id=request.client_id,
        name=known.name,
        host=host,
        redirect_uri=redirect,
        redirect_host=redirect_host(redirect),
        refreshes=REFRESH in known.grants or request.offline,
    )


def _known(client_id: str, user: AbstractBaseUser) -> Registration | ClientDocument:
    if not client_id:
        raise Refusal(_("The program did not say which one it is (client_id)."))
    has_document = is_document_url(client_id)
    if has_document and oauth_settings().documents:
        try:
            return documents.find(client_id, user)
        except NotFetched:
            raise Refusal(
                _(
                    "This site could not fetch %(url)s, where the program says who it"
                    " is. Try again in a minute. If that does not help, tell the people"
                    " who run this site: its log has the reason. If it has no way to"
                    " the internet, they can set %(setting)s to False; programs then"
                    " register."
                )
                % {"url": visible(client_id), "setting": 'MCP["OAUTH"]["documents"]'}
            ) from None
        except OAuthError as error:
            raise Refusal(
                _(
                    "%(host)s did not say who this program is. Try again in a minute."
                    " (%(why)s)"
                )
                % {"host": visible(client_id.split("/")[2]), "why": error.description}
            ) from None
    registration = registration_of(client_id, secrets())
    if registration is None and (has_document or client_id.startswith(CLIENT)):
        raise Refusal(
            _(
                "Your program knows this site by an old registration. Remove the"
                " connection there and add it again."
            )
        )
    if registration is None:
        raise Refusal(_("This program is not registered at this site."))
    return registration


def _check_let_in(known: Registration | ClientDocument, host: str) -> None:
    hosts = [host] if host else [*filter(None, map(redirect_host, known.redirects))]
    if not oauth_settings().lets_in(hosts):
        raise Refusal(
            _("This site does not let programs of %(hosts)s in.")
            % {"hosts": ", ".join(hosts)}
        )
