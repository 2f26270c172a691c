"""Companies that decide who signs in: `MCP["OAUTH"]["issuers"]`, and their ID-JAGs.

An ID-JAG (RFC 7523, 2.1) is a JWT for a person and a program.  `verify_grant` runs on
the loop, `answer_grant` in a thread.  If an entry is wrong, only that entry is off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from hmac import compare_digest
from secrets import token_hex, token_urlsafe
from typing import Annotated, Any, Final, Literal
from uuid import NAMESPACE_OID, uuid5

from django.core.signals import setting_changed
from django.db import IntegrityError, router
from django.dispatch import receiver
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_variables
from pydantic import Field, TypeAdapter, ValidationError

from mcp_app.auth import connections
from mcp_app.auth.client_assertions import check_claims, read_jwt
from mcp_app.auth.issuer_keys import KeySet
from mcp_app.auth.issuer_options import EMAIL, EntryOptions, IssuerOptions, read_options
from mcp_app.auth.issuer_options import UnusableIssuer as Unusable
from mcp_app.auth.issuer_tokens import LEEWAY_S, find_user, signed_claims
from mcp_app.auth.resources import oauth_settings, slug_of_resource
from mcp_app.auth.site_requests import principal_of_user
from mcp_app.conf import mcp_settings
from mcp_app.egress.sites import SITE_KEY, UnusableSite, read_shape
from mcp_app.interface.principal import ISSUER, AuthenticationFailed
from mcp_app.models import AccessToken, Connection, IssuedToken, Server, UsedAssertion
from mcp_app.models.fields import digest
from mcp_app.models.history import ADDITION, log_actions
from mcp_app.protocol.json_types import JsonObject
from mcp_app.protocol.oauth import requests
from mcp_app.protocol.oauth.requests import CHANGE, READ, AssertionGrant, OAuthError
from mcp_app.site_time import unix_time

TYPE: Final = "oauth-id-jag+jwt"
"""The `typ` in the header of an ID-JAG."""
SCOPES_OF: Final = {"read": frozenset([READ]), "change": frozenset([READ, CHANGE])}
Texts = Annotated[list[str], Field(strict=False)]
Secret = Annotated[str, Field(pattern=r"^[ -~]{16,}$", strict=True)]
Proof = dict[Literal["secret"], Secret] | dict[Literal["proof"], Literal["none"]]
CLIENTS = TypeAdapter(dict[Annotated[str, Field(pattern=r"^[!-~]+$")], Proof])


class EntryShape(EntryOptions, extra="forbid"):
    """The shape of an entry; docs/settings.md has each option."""

    title: str = Field("", max_length=40, pattern=r"^[^\p{C}\p{Zl}\p{Zp}]*$")
    domains: Texts | None = None
    clients: Any = Field(default=None, repr=False)
    servers: Texts | None = None
    may: Literal["read", "change"] = "read"


@dataclass(frozen=True, eq=False, repr=False)
class Company:
    """A usable entry; `secrets` are by client id, "" if a client needs no proof."""

    name: str
    entry: EntryShape
    options: IssuerOptions
    keys: KeySet
    secrets: Mapping[str, str]

    @sensitive_variables()
    def admits_client(self, credentials: requests.ClientCredentials) -> bool:
        """Whether the credentials are those of a client; takes constant time."""
        secret = self.secrets.get(credentials.client_id)
        # If a client needs no proof, "" is compared with "".
        shown = credentials.secret if secret else ""
        return secret is not None and compare_digest(secret.encode(), shown.encode())


@cache
def read_entries() -> tuple[Sequence[Company], Sequence[str]]:
    """Return the usable entries, and what is wrong with the rest, without secrets."""
    usable: list[Company] = []
    problems: list[str] = []
    for name, values in oauth_settings().issuers.items():
        try:
            company = _read_company(name, values)
            peers = [x for x in usable if x.options.issuer == company.options.issuer]
            if any(each.secrets.keys() & company.secrets.keys() for each in peers):
                raise Unusable('has the "issuer" and a client of an entry before it.')
            usable.append(company)
        except Unusable as error:
            problems.append(f'MCP["OAUTH"]["issuers"][{name!r}] {error}')
    return usable, problems


@receiver(setting_changed)
def _clear_cache(**_: object) -> None:
    read_entries.cache_clear()


@sensitive_variables()
def _read_company(name: str, values: Any) -> Company:
    if not SITE_KEY.fullmatch(name) or not isinstance(values, Mapping):
        raise Unusable("must be a dict, and its name 1 to 40 of a-z0-9_-, a-z first.")
    try:
        entry = read_shape(EntryShape, values)
        clients: Any = CLIENTS.validate_python(entry.clients)
    except UnusableSite as error:
        raise Unusable(str(error)) from None
    except ValidationError:
        clients = {}
    # An empty dict for a client fits `CLIENTS`, too.
    if not clients or not all(clients.values()):
        raise Unusable(
            'needs "clients": for each client id a dict with either "secret", at least'
            ' 16 characters of ASCII, or "proof": "none".'
        )
    if entry.domains is not None and entry.claim != EMAIL:
        raise Unusable('has "domains", which need the "claim" "email".')
    if entry.domains == []:
        raise Unusable('has "domains" without any, so it speaks for nobody.')
    # The audience is a filler: assertions are for our issuer.
    options = read_options(name, {**values, "audience": name})
    secrets = {key: str(each.get("secret", "")) for key, each in clients.items()}
    return Company(name, entry, options, KeySet(options), secrets)


@sensitive_variables()
async def verify_grant(
    text: str, companies: Sequence[Company], client_id: str, issuer: str
) -> tuple[Company, dict[str, Any]]:
    """Return the company that signed an ID-JAG for this client, and its claims.

    `issuer` is ours.  Raises `AuthenticationFailed`, `AuthenticationUnavailable`.
    """
    assertion = read_jwt(text)
    header, iss = assertion.header, assertion.claims.get("iss")
    company = next((each for each in companies if each.options.issuer == iss), None)
    kid, algorithm = header.get("kid"), header["alg"]
    if company is None or header.get("typ") != TYPE or not isinstance(kid, str | None):
        raise AuthenticationFailed(f"Its iss, typ (not {TYPE}) or kid is wrong.")
    key = await company.keys.find(kid, algorithm)
    claims = signed_claims(assertion, key, algorithm, company.options.issuer)
    check_claims(claims, issuer)
    are_texts_valid = claims["sub"] and isinstance(claims.get("scope", ""), str)
    if type(claims.get("iat")) not in (int, float) or not are_texts_valid:
        raise AuthenticationFailed("Its iat, its sub or its scope is of a wrong form.")
    if claims.get("client_id") != client_id:
        raise AuthenticationFailed("Its client_id is not the client that shows it.")
    return company, claims


@sensitive_variables()
def answer_grant(
    company: Company, claims: Mapping[str, Any], grant: AssertionGrant, issuer: str
) -> JsonObject:
    """Return a key for a verified ID-JAG; raises `OAuthError`, or as `verify_grant`."""
    named, servers = claims.get("resource"), company.entry.servers
    slug = slug_of_resource(named, issuer) if isinstance(named, str) else None
    is_same = not grant.resource or slug_of_resource(grant.resource, issuer) == slug
    if slug is None or not is_same or (servers is not None and slug not in servers):
        message = "The assertion and the request must name one server of this issuer."
        raise OAuthError("invalid_target", message)
    claimed = requests.scopes_in(claims.get("scope", READ))
    scopes = claimed & grant.scope & SCOPES_OF[company.entry.may]
    user = _find_person(company, claims)
    issue = partial(_issue_key, company, claims, user, slug, scopes)
    try:
        return issue()
    except IntegrityError:
        # Another process made the row at the same moment: now it exists.
        return issue()


def _find_person(company: Company, claims: Mapping[str, Any]) -> Any:
    if company.entry.domains:
        domain = str(claims.get(EMAIL)).rpartition("@")[2]
        domains = [each.lower() for each in company.entry.domains]
        if not domain.isascii() or domain.lower() not in domains:
            raise AuthenticationFailed("Its email is of no domain of the entry.")
        # The settings vouch for these addresses, unless the issuer denies it.
        claims = {"email_verified": True, **claims}
    user = find_user(company.options, claims)
    # This raises if the user may not log in.
    principal_of_user(user, kind=ISSUER, client=company.name)
    return user


@connections.in_transaction
def _issue_key(
    company: Company, claims: Any, user: Any, slug: str, scopes: frozenset[str]
) -> JsonObject:
    using, now = router.db_for_write(AccessToken), timezone.now()
    servers = Server.objects.using(using).filter(slug=slug, published__isnull=False)
    server = servers.first()
    if server is None or not connections.allows_sign_in(server):
        raise OAuthError("invalid_target", "Nobody can sign in to this server.")
    connection = _open_connection(company, claims["client_id"], user, server, now)
    row = connection.token
    scopes &= SCOPES_OF[row.may]
    if not scopes:
        raise OAuthError("invalid_scope", "None of the scopes is left.")
    connection.refreshed = now
    connection.save(update_fields=["refreshed"])
    ends = connections.connection_end(connection, connection.until, now)
    AccessToken.objects.using(using).move_end(row.pk, ends)
    lasts = timedelta(seconds=mcp_settings.limits.oauth_access)
    ends = min(ends, now + lasts, now + connections.MACHINE_LASTS)
    answer = connections.issue_key(row, now, ends, only_reads=CHANGE not in scopes)
    until = unix_time(claims["exp"] + LEEWAY_S)
    # This comes last: an assertion that was refused may come again.
    if not UsedAssertion.note_use(claims["iss"], claims["jti"], until, using):
        raise AuthenticationFailed("It was used before.")
    return {**answer, "scope": " ".join(sorted(scopes, reverse=True))}


def _open_connection(
    company: Company, client_id: str, user: Any, server: Server, now: datetime
) -> Connection:
    """Return or make the user's app here; what people narrowed or ended stays so."""
    using = router.db_for_write(AccessToken)
    identity = json.dumps([company.name, client_id, str(user.pk), server.pk])
    # `made_with` is unique: if two processes make the app at once, one tries again.
    columns = {"user": user, "made_with": uuid5(NAMESPACE_OID, identity)}
    rows = Connection.objects.using(using).filter(issuer=company.name)
    candidate = rows.filter(**{f"token__{k}": v for k, v in columns.items()}).first()
    connection = None if candidate is None else connections.lock(candidate)
    if connection is None:
        name = f"{client_id[:50]} ({company.entry.title or company.name})"
        columns |= {"name": name, "may": company.entry.may}
        row = AccessToken.objects.using(using).make_app(server, **columns)
        message = gettext("Let “%(app)s” in by %(company)s (%(may)s).")
        values = {"app": row.name, "company": company.name, "may": row.may}
        log_actions(user, [row], ADDITION, message % values)
        return Connection.objects.using(using).create(
            token=row,
            client_id=client_id,
            # No code is exchanged here: the column gets a random, used one.
            code=digest(token_urlsafe()),
            code_ends=now,
            code_used=True,
            received=True,
            may_ask=row.may,
            issuer=company.name,
        )
    row, until = connection.token, connection.until
    if not row.has_ended(now):
        return connection
    by_site = row.revoked is not None and connection.ended != Connection.Ended.CLIENT
    if by_site or (until is not None and until <= now):
        raise OAuthError("invalid_grant", "This connection was ended at the site.")
    # End its keys, and the streams of its old family.
    IssuedToken.objects.using(using).filter(token=row).delete()
    row.family, row.revoked, connection.ended = token_hex(16), None, ""
    connection.save(update_fields=["ended"])
    row.save(update_fields=["family", "revoked"])
    return connection
