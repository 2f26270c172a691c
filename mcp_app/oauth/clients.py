"""Find the program that asks for access: a registered one, or one with a document."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from asgiref.sync import async_to_sync
from django.contrib.auth.models import AbstractBaseUser
from django.utils.translation import gettext as _

from mcp_app.auth.connections import Client
from mcp_app.auth.resources import oauth_settings
from mcp_app.conf import secret_keys
from mcp_app.egress.documents import Bounds, fetch
from mcp_app.egress.resolving import EgressError
from mcp_app.interface.rules import visible
from mcp_app.process.rates import MinuteLimit
from mcp_app.protocol.oauth import clients
from mcp_app.protocol.oauth.addresses import (
    is_same_redirect,
    redirect_host,
    redirect_problem,
)
from mcp_app.protocol.oauth.requests import AuthorizationRequest, OAuthError
from mcp_app.protocol.oauth.texts import CLIENT

# -- documents -------------------------------------------------------------------------
# Fetches the documents in which programs describe themselves; their URL is their id.
#
# A document is fetched only for a person who is signed in, one at a time for each
# person, and few at once.  So a person who names hosts that never answer does not block
# others.  If a fetch fails, a document that was read before is used for a day.

logger = logging.getLogger("mcp_app.oauth")

TIMEOUT_S: Final = 5.0
FAILED_S: Final = 60.0
"""How long a document is not fetched again after a failure."""
MAX_DOCUMENT_AGE_S: Final = 86_400.0
MAX_FETCHES_PER_MINUTE: Final = 10
MAX_CONCURRENT_FETCHES: Final = 20
MAX_STORED_DOCUMENTS: Final = 1_000

Fetch = Callable[[str], tuple[clients.ClientDocument, int]]
"""Returns a document, and how many seconds it is valid; raises `OAuthError`."""

REMEDY: Final = (
    'If this site has no way to the internet, set MCP["OAUTH"]["documents"] to False:'
    " programs then register."
)


class NoDocument(OAuthError):
    """A document is not available at the moment."""

    def __init__(self) -> None:
        super().__init__("invalid_client", "Its document cannot be had at the moment.")


class NotFetched(NoDocument):
    """The fetch got no answer; the log has the reason."""


class Busy(NoDocument):
    """Too many fetches are running, or this person asked for too many."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """When a document was `read`, and `until` when it is not fetched again."""

    document: clients.ClientDocument | None
    """None if the last fetch failed and no document was read before."""
    read: float
    until: float
    fetched: bool = True
    """Whether the last fetch got an answer."""


class Documents:
    """The documents of this process; callable from any thread."""

    def __init__(
        self, fetch: Fetch, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = threading.Lock()
        self._stored: dict[str, _Entry] = {}
        self._busy: set[str] = set()
        self._limit = MinuteLimit(MAX_FETCHES_PER_MINUTE)

    def find_document(self, url: str, user: AbstractBaseUser) -> clients.ClientDocument:
        """Return the document at a URL; raise `OAuthError` if it is not available."""
        if (problem := clients.document_url_problem(url)) is not None:
            raise OAuthError("invalid_client", f"client_id is no document. {problem}")
        now = self._clock()
        entry = self._stored.get(url, _Entry(None, now, now))
        if now < entry.until:
            if entry.document is None:
                raise NoDocument if entry.fetched else NotFetched
            return entry.document
        old = entry.document if now - entry.read < MAX_DOCUMENT_AGE_S else None
        try:
            with self._fetch_slot(str(user.pk)):
                document, seconds = self._fetch(url)
        except OAuthError as error:
            if not isinstance(error, Busy):
                fetched = not isinstance(error, NotFetched)
                until = self._clock() + FAILED_S
                self._store_entry(url, _Entry(old, entry.read, until, fetched))
            if old is None:
                raise
            return old
        now = self._clock()
        self._store_entry(url, _Entry(document, now, now + seconds))
        return document

    @contextmanager
    def _fetch_slot(self, user: str) -> Iterator[None]:
        """Take one of the places, and give it back; raise `Busy` if none is free."""
        with self._lock:
            full = user in self._busy or len(self._busy) >= MAX_CONCURRENT_FETCHES
            if full or not self._limit.count_attempt(user, self._clock()):
                raise Busy
            self._busy.add(user)
        try:
            yield
        finally:
            with self._lock:
                self._busy.discard(user)

    def _store_entry(self, url: str, stored: _Entry) -> None:
        with self._lock:
            self._stored.pop(url, None)
            if len(self._stored) >= MAX_STORED_DOCUMENTS:
                # The first entry was stored before all others.
                del self._stored[next(iter(self._stored))]
            self._stored[url] = stored


def fetch_document(url: str) -> tuple[clients.ClientDocument, int]:
    """Return the document at a URL, and how many seconds it is valid; blocks."""
    options = oauth_settings()
    bounds = Bounds(
        networks=options.networks,
        ca=options.ca,
        timeout=TIMEOUT_S,
        answer=clients.MAX_METADATA_BYTES,
    )
    try:
        answer = async_to_sync(fetch)(url, bounds, key="a client's document")
        document = clients.read_document(
            url, answer.media_type, answer.body, options.schemes
        )
    except EgressError as error:
        logger.warning("No document of %s: %s %s", url, error.message, REMEDY)
        raise NotFetched from None
    except OAuthError as error:
        logger.warning("No document of the client %s: %s", url, error.description)
        raise
    return document, clients.cache_seconds(answer.headers.get("cache-control"))


documents: Final = Documents(fetch_document)
"""The documents of this process."""


# -- clients ---------------------------------------------------------------------------

REFRESH: Final = "refresh_token"


class Refusal(Exception):
    """A page that a person sees instead of the consent page.

    `link` leads back to the program; it is "" if its address is unknown.
    """

    def __init__(self, sentence: str, link: str = "", status: int = 400) -> None:
        super().__init__(sentence)
        self.sentence, self.link, self.status = sentence, link, status


def find_client(request: AuthorizationRequest, user: AbstractBaseUser) -> Client:
    """Return the program that asks; raise `Refusal`.

    If the client id is the URL of a document, the document is fetched.
    """
    program = _find_program(request.client_id, user)
    redirect = request.redirect_uri
    if not redirect:
        raise Refusal(_("The program did not say where its answer goes."))
    # A registration may have a redirect that the settings no longer allow.
    problem = redirect_problem(redirect, oauth_settings().schemes)
    is_registered = any(is_same_redirect(each, redirect) for each in program.redirects)
    if problem is not None or not is_registered:
        raise Refusal(
            _(
                "The program wants its answer at %(where)s, which is none of the"
                " addresses that it may name here."
            )
            % {"where": visible(redirect)}
        )
    host = program.host if isinstance(program, clients.ClientDocument) else ""
    hosts = [host] if host else [*filter(None, map(redirect_host, program.redirects))]
    if not oauth_settings().admits_hosts(hosts):
        raise Refusal(
            _("This site does not let programs of %(hosts)s in.")
            % {"hosts": ", ".join(hosts)}
        )
    return Client(
        client_id=request.client_id,
        name=program.name,
        host=host,
        redirect_uri=redirect,
        redirect_host=redirect_host(redirect),
        refreshes=REFRESH in program.grants or request.offline,
    )


def _find_program(
    client_id: str, user: AbstractBaseUser
) -> clients.Registration | clients.ClientDocument:
    if not client_id:
        raise Refusal(_("The program did not say which one it is (client_id)."))
    has_document = clients.is_document_url(client_id)
    if has_document and oauth_settings().documents:
        try:
            return documents.find_document(client_id, user)
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
            # Of https://host/path, the third part is the host.
            raise Refusal(
                _(
                    "%(host)s did not say who this program is. Try again in a minute."
                    " (%(why)s)"
                )
                % {"host": visible(client_id.split("/")[2]), "why": error.description}
            ) from None
    registration = clients.registration_of(client_id, secret_keys())
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
