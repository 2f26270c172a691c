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
from mcp_app.egress.sites import (
    MAX_TIMEOUT_S,
    UnusableSite,
    ca_path_of,
    networks_of,
    number_of,
)
from mcp_app.interface.errors import with_remedy
from mcp_app.interface.server import DEFAULT_SLUG

FindUser: TypeAlias = Callable[[dict[str, Any]], object]
"""Finds the user whom verified claims mean, or None; it may block."""

EMAIL: Final = "email"
CHANGEABLE: Final = "preferred_username"
"""A claim that names another person tomorrow (OpenID Connect Core, section 5.7)."""
WAIT_S: Final = 5.0
PACKAGES: Final = ("jwt", "httpcore2")


class UnusableIssuer(ValueError):
    """Options by which nobody can be let in; the sentence follows the entry's name."""


@dataclass(frozen=True, eq=False, kw_only=True)
class IssuerOptions:
    """What an entry says; docs/settings.md has each option.

    `name` is the entry's, `user` finds whom the claims mean, else `field` does.
    `audience` of "" is the address of the server that was asked, `jwks` of "" what the
    issuer's metadata name.
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


def read_options(name: str, values: Mapping[str, Any]) -> IssuerOptions:
    """Return the options of an entry; raises `UnusableIssuer`."""
    _check_packages()
    try:
        networks = tuple(networks_of(values.get("networks", ())))
        for option in ("issuer", *(("jwks",) if "jwks" in values else ())):
            url = _text_option(values, option)
            document_address(url.partition("?")[0], networks, option)
        bounds = Bounds(
            networks=networks,
            ca=ca_path_of(values),
            timeout=number_of(values, "timeout", WAIT_S, MAX_TIMEOUT_S),
        )
    except UnusableSite as error:
        raise UnusableIssuer(str(error)) from None
    return IssuerOptions(
        name=name,
        issuer=_issuer_option(values),
        claim=_claim_option(values),
        **_way_to_users(values),
        audience=_audience_option(values),
        jwks=_text_option(values, "jwks"),
        scopes=_scopes_option(values),
        bounds=bounds,
    )


def _check_packages() -> None:
    for each in PACKAGES:
        if find_spec(each) is None:
            sentence = "needs a package that is not installed"
            raise UnusableIssuer(with_remedy(sentence, ImportError(name=each)))


def _text_option(values: Mapping[str, Any], option: str) -> str:
    value = values.get(option, "")
    if not isinstance(value, str):
        raise UnusableIssuer(f'has the "{option}" {value!r}: it must be a text.')
    return value


def _issuer_option(values: Mapping[str, Any]) -> str:
    issuer = _text_option(values, "issuer")
    if "?" in issuer:
        # RFC 8414, section 2.
        raise UnusableIssuer(
            f'has the "issuer" {issuer!r}, and no issuer has a query. Write what stands'
            ' as "iss" in its tokens.'
        )
    return issuer


def _claim_option(values: Mapping[str, Any]) -> str:
    claim = _text_option(values, "claim")
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
    return claim


def _way_to_users(values: Mapping[str, Any]) -> dict[str, Any]:
    column, path = _text_option(values, "field"), _text_option(values, "user")
    if bool(column) == bool(path):
        what = 'has both "field" and "user": use' if column else "needs"
        raise UnusableIssuer(
            f'{what} either "field", a unique column of the user, or "user", the dotted'
            " path of a function that gets the claims and returns a user or None."
        )
    return (
        {"field": _unique_column(column)}
        if column
        else {"user": _import_function(path)}
    )


def _unique_column(name: str) -> str:
    about = get_user_model()._meta
    try:
        column = about.get_field(name)
    except FieldDoesNotExist:
        raise UnusableIssuer(
            f'has the "field" {name!r}, which {about.label} does not have. Use a unique'
            ' column of it, or "user".'
        ) from None
    alone = {each.fields for each in about.total_unique_constraints}
    if not getattr(column, "unique", False) and (name,) not in alone:
        raise UnusableIssuer(
            f'has the "field" {name!r}, which several rows of {about.label} may share.'
            ' Use a unique column, or "user".'
        )
    return name


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


def _audience_option(values: Mapping[str, Any]) -> str:
    audience = _text_option(values, "audience")
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
    return audience


def _scopes_option(values: Mapping[str, Any]) -> bool:
    scopes = values.get("scopes", True)
    if not isinstance(scopes, bool):
        raise UnusableIssuer(f'has "scopes" {scopes!r}: it must be True or False.')
    return scopes
