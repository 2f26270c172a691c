"""The options of an external issuer, in an entry of `MCP["AUTHENTICATION"]`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final, TypeAlias, cast

from django.contrib.auth import get_user_model
from django.core.exceptions import FieldDoesNotExist
from django.utils.module_loading import import_string

from mcp_app.auth.resources import audience_of
from mcp_app.egress.documents import Bounds, document_address
from mcp_app.egress.sites import Options, Timeout, UnusableSite, read_shape
from mcp_app.interface.errors import with_remedy
from mcp_app.interface.server import DEFAULT_SLUG

FindUser: TypeAlias = Callable[[dict[str, Any]], object]
"""Finds the user whom verified claims name, or None; it may block."""

EMAIL: Final = "email"
CHANGEABLE: Final = "preferred_username"
"""A claim that may name another person tomorrow (OpenID Connect Core, 5.7)."""


class UnusableIssuer(ValueError):
    """The options of an entry are wrong; the message follows the entry's name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class IssuerOptions:
    """What an entry says; docs/settings.md has each option.

    `name` is the entry's.  `user` finds the user of the claims, or else `field` does.
    If `audience` is "", the address of the called server is meant; if `jwks` is "", the
    address in the issuer's metadata.
    """

    name: str
    issuer: str
    claim: str
    field: str = ""
    user: FindUser | None = None
    audience: str = ""
    jwks: str = ""
    scopes: bool = True
    bounds: Bounds


class EntryOptions(Options, extra="ignore"):
    """The shape of an entry, without the members that all entries have."""

    issuer: str = ""
    jwks: str = ""
    claim: str = ""
    field: str = ""
    user: str = ""
    audience: str = ""
    scopes: bool = True
    timeout: Timeout = 5.0


def read_options(name: str, values: Mapping[str, Any]) -> IssuerOptions:
    """Return the options of an entry; raises `UnusableIssuer`."""
    for each in ("jwt", "httpcore2"):
        if find_spec(each) is None:
            sentence = "needs a package that is not installed"
            raise UnusableIssuer(with_remedy(sentence, ImportError(name=each)))
    try:
        entry = read_shape(EntryOptions, values)
        for option in ("issuer", "jwks") if "jwks" in values else ("issuer",):
            # The address of the keys may have a query; "issuer" is checked below.
            address = getattr(entry, option).partition("?")[0]
            document_address(address, entry.networks, option)
    except UnusableSite as error:
        raise UnusableIssuer(str(error)) from None
    if "?" in entry.issuer:
        # RFC 8414, section 2.
        raise UnusableIssuer(
            f'has the "issuer" {entry.issuer!r}, and no issuer has a query. Write what'
            ' stands as "iss" in its tokens.'
        )
    _check_claim(entry.claim)
    _check_audience(entry.audience)
    return IssuerOptions(
        name=name,
        issuer=entry.issuer,
        claim=entry.claim,
        **_way_to_users(entry.field, entry.user),
        audience=entry.audience,
        jwks=entry.jwks,
        scopes=entry.scopes,
        bounds=Bounds(networks=entry.networks, ca=entry.ca, timeout=entry.timeout),
    )


def _check_claim(claim: str) -> None:
    if not claim:
        raise UnusableIssuer(
            'needs a "claim", by which its tokens name a person for good, such as'
            ' "sub".'
        )
    if claim == CHANGEABLE:
        raise UnusableIssuer(
            f'has the "claim" {claim!r}, which people can change, and then be somebody'
            ' else here. Use "sub", or "email" if the issuer checks addresses.'
        )


def _way_to_users(column: str, path: str) -> dict[str, Any]:
    if bool(column) == bool(path):
        what = 'has both "field" and "user": use' if column else "needs"
        raise UnusableIssuer(
            f'{what} either "field", a unique column of the user, or "user", the dotted'
            " path of a function that gets the claims and returns a user or None."
        )
    if not column:
        return {"user": _import_function(path)}
    _check_column(column)
    return {"field": column}


def _check_column(name: str) -> None:
    table = get_user_model()._meta
    try:
        column = table.get_field(name)
    except FieldDoesNotExist:
        raise UnusableIssuer(
            f'has the "field" {name!r}, which {table.label} does not have. Use a unique'
            ' column of it, or "user".'
        ) from None
    unique_sets = {constraint.fields for constraint in table.total_unique_constraints}
    if not getattr(column, "unique", False) and (name,) not in unique_sets:
        raise UnusableIssuer(
            f'has the "field" {name!r}, which several rows of {table.label} may share.'
            ' Use a unique column, or "user".'
        )


def _import_function(path: str) -> FindUser:
    try:
        function: Any = import_string(path)
    except Exception as error:
        # A module may raise whatever it likes.
        sentence = f'has the "user" {path!r}, which cannot be imported: {error}'
        raise UnusableIssuer(with_remedy(sentence, error)) from None
    if not callable(function) or isinstance(function, type):
        raise UnusableIssuer(f'has the "user" {path!r}, which is not a function.')
    if inspect.iscoroutinefunction(function):
        raise UnusableIssuer(
            f'has the "user" {path!r}, which is async. Write it with “def”: it is'
            " called in a thread."
        )
    return cast("FindUser", function)


def _check_audience(audience: str) -> None:
    try:
        usable = audience or audience_of(DEFAULT_SLUG)
    except ValueError:
        usable = ""
    if not usable:
        raise UnusableIssuer(
            'needs an "audience", because without MCP["PUBLIC_URL"], such as'
            ' "https://shop.example.com", servers have no address that tokens could be'
            " for. Set one of them."
        )
