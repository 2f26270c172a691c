"""Tools from a view of Django REST framework: its actions, as its router has them.

drf-spectacular describes each view in a separate document: in a common one, two
serializers of one name would become one component.  Nothing of the site is patched.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import unwrap
from typing import Any, Final

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import (
    ComponentRegistry,
    force_instance,
    get_doc,
    get_view_model,
    is_versioning_supported,
    modify_for_versioning,
    operation_matches_version,
)
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.utils import extend_schema
from rest_framework import authentication
from rest_framework.exceptions import NotFound
from rest_framework.fields import FileField
from rest_framework.generics import GenericAPIView
from rest_framework.mixins import CreateModelMixin
from rest_framework.permissions import DjangoModelPermissions
from rest_framework.request import Request
from rest_framework.settings import api_settings
from rest_framework.versioning import AcceptHeaderVersioning, NamespaceVersioning
from rest_framework.views import APIView
from rest_framework.viewsets import ViewSetMixin

from mcp_app.catalog.registered_function import DeclaredTool
from mcp_app.catalog.registry import Registry
from mcp_app.catalog.toolset_options import Toolset
from mcp_app.interface.definitions import ToolHints
from mcp_app.interface.errors import RegistrationError
from mcp_app.interface.rules import AccessRequirements
from mcp_app.kinds.http.request import JSON
from mcp_app.kinds.openapi.offers import offers_of
from mcp_app.kinds.openapi.reading import Offer, argument_name, snake_case
from mcp_app.protocol.json_types import JsonObject
from mcp_app.toolsets.openapi import ToolMaker, plain_document
from mcp_app.toolsets.view_sources import read_names

logger = logging.getLogger("mcp_app.toolsets")

_ROOT: Final = r"^/(?:(?:api|v[0-9.]+)/)*"
"""The part of a path that says nothing about the view: names leave it out."""


def declare_tools(toolset: Toolset, registry: Registry) -> Iterator[DeclaredTool]:
    """Yield a tool for each action of a viewset, or each method of another view."""
    generator = SchemaGenerator()
    # Warnings of drf-spectacular are about the site's own document.
    with GENERATOR_STATS.silence():
        operations = {each.key: each for each in _operations(generator, toolset)}
        components = generator.registry.build({})
    paths: JsonObject = {}
    for each in operations.values():
        paths.setdefault(each.path, {})[each.method.lower()] = each.about
    version = spectacular_settings.OAS_VERSION
    document = {"openapi": version, "paths": paths, "components": components}
    maker = ToolMaker(toolset, registry)
    offers = offers_of(plain_document(document), maker.site)
    _check_parameters(offers, toolset.options.get("parameters", ()))
    actions = dict.fromkeys(operations[each.key].action for each in offers)
    wanted = toolset.wanted_tools([*actions])
    for offer in offers:
        operation = operations[offer.key]
        if operation.action not in wanted:
            continue
        if not toolset.options.get("stand_in"):
            operation.check_authentication()
        bar = operation.bar or offer.bar
        remarks = (*offer.remarks, *operation.remarks)
        if not bar:
            remarks += (*operation.unsaid_remarks(offer.input_schema["properties"]),)
        described = replace(offer, bar=bar, remarks=remarks)
        demands = AccessRequirements(permissions=operation.permissions)
        hints = _ADDS if operation.is_create else None
        view, accept = operation.callback, operation.accept
        yield from maker.tools_of(described, view, accept, demands, hints)


def _operations(generator: SchemaGenerator, toolset: Toolset) -> list[_Operation]:
    view_class = getattr(toolset.subject, "cls", toolset.subject)
    if not (isinstance(view_class, type) and issubclass(view_class, APIView)):
        raise RegistrationError(
            "It must be a view of Django REST framework: a viewset, an APIView or a"
            " function of @api_view."
        )
    operations = []
    prefix = toolset.options.get("prefix", "")
    inspector = generator.endpoint_inspector_cls()
    # This avoids the site's hooks, which drop what its own document does not show.
    for path, regex, method, callback in inspector._get_api_endpoints(None, ""):
        # A path that ends with a format leads to the same view as the path without.
        has_format = path.rstrip("/").endswith("{format}")
        if callback.cls is view_class and path.startswith(prefix) and not has_format:
            view = generator.create_view(callback, method)
            short_path = generator.coerce_path(path, method, view)
            each = _Operation(toolset.options, callback, view, method, short_path)
            is_version = each.choose_version(inspector.patterns)
            if is_version and each.describe(regex, generator.registry):
                operations.append(each)
    _check_places(operations, toolset.options)
    # PATCH can do what PUT can, so leave out PUT where both exist.
    patched = {each.path for each in operations if each.method == "PATCH"}
    return [o for o in operations if o.method != "PUT" or o.path not in patched]


def _check_parameters(offers: Sequence[Offer], chosen: Sequence[str]) -> None:
    names = dict.fromkeys(name for each in offers for name in each.pair_names if name)
    for each in chosen:
        if argument_name(each) not in names:
            message = f"parameters names {each!r}. There is {', '.join(names)}."
            raise RegistrationError(message)


def _check_places(operations: Sequence[_Operation], options: Mapping[str, Any]) -> None:
    if not operations:
        where = [f" with the {n} {options[n]}" for n in _PLACE_OPTIONS if n in options]
        raise RegistrationError(
            f"It is not in the URLconf{''.join(where)}, or has schema = None. Register"
            " it with a router, or add its path."
        )
    places: defaultdict[object, list[str]] = defaultdict(list)
    for each in operations:
        # Paths with more or fewer parameters are other operations: /a/ and /a/{id}/.
        places[each.method, each.action, each.path.count("{")].append(each.path)
    for paths in places.values():
        if len(paths) > 1:
            raise RegistrationError(
                f"It stands in the URLconf more than once: {', '.join(paths)}. Say"
                f' which one is meant, as in prefix="{paths[0]}".'
            )


def _schema_of(view: Any) -> Any:
    """Return an `AutoSchema` for a view, whichever class the settings name."""
    schema = view.schema
    if isinstance(schema, AutoSchema):
        # The class may share one schema among all its operations, so copy it.
        return copy(schema)
    # @extend_schema replaces the schema by one of a class that it defines itself.
    if schema.__class__.__module__ != extend_schema.__module__:
        return AutoSchema()
    # This class comes first, and that of the settings last.
    framework: Any = api_settings.DEFAULT_SCHEMA_CLASS
    usual = type("Usual", (AutoSchema, framework), {})
    return type("Extended", (schema.__class__, usual), {})()


@dataclass
class _Operation:
    """One method of one path; `view` is an instance that answers no requests.

    If it cannot be a tool, `bar` says why; `accept` is the header of that name.
    """

    options: Mapping[str, Any]
    callback: Any
    view: Any
    method: str
    path: str
    about: JsonObject = field(default_factory=dict)
    accept: str = JSON
    bar: str = ""
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Each read of the schema of a view makes a new object, so keep one.
        self.schema = self.view.schema = _schema_of(self.view)
        make_request = spectacular_settings.GET_MOCK_REQUEST
        self.view.request = make_request(self.method, self.path, self.view, None)

    @property
    def key(self) -> str:
        """The key of the operation in its document."""
        return f"{self.method} {self.path}"

    @property
    def action(self) -> str:
        return getattr(self.view, "action", None) or self.method.lower()

    @property
    def is_create(self) -> bool:
        """Whether it is the framework's create action, which only adds a row."""
        is_post = self.action == "post" and isinstance(self.view, CreateModelMixin)
        return is_post or self.action == "create"

    @cached_property
    def extra(self) -> Any:
        """The extra action that this method belongs to; None if there is none."""
        if not isinstance(self.view, ViewSetMixin):
            return None
        extras: Any = type(self.view).get_extra_actions()
        return next((e for e in extras if self.action in e.mapping.values()), None)

    def choose_version(self, patterns: Any) -> bool:
        """Set the version of the view; return whether the view is in that version."""
        scheme = self.view.versioning_class
        if scheme is None or not is_versioning_supported(scheme):
            return True
        # Without the option `version`, a namespace of the view is its version.
        by_namespace = "version" not in self.options and issubclass(
            scheme, NamespaceVersioning
        )
        version = self.options.get("version") or scheme.default_version
        if not (version or by_namespace):
            versions = ", ".join(scheme.allowed_versions or "…")
            raise RegistrationError(f'It has versions ({versions}): add version="…".')
        # This puts the version into the path or header; for a namespace any will do.
        self.path = modify_for_versioning(
            patterns, self.method, self.path, self.view, version or "any"
        )
        if issubclass(scheme, AcceptHeaderVersioning):
            self.accept = self.view.request.accepted_media_type
        # `NotFound` means that the path has no version that the view allows.
        with suppress(NotFound):
            if by_namespace:
                version, _ = self.view.determine_version(self.view.request)
                self.view.request.version = version
            return bool(operation_matches_version(self.view, version))
        return False

    def describe(self, regex: str, registry: ComponentRegistry) -> bool:
        """Add what drf-spectacular says; return whether it shows the operation."""
        try:
            about = self.schema.get_operation(
                self.path, regex, _ROOT, self.method, registry
            )
            if about is None:
                return False
            self.about = about
            about["operationId"] = self._tool_name()
            about["description"] = self._description()
            self._soften_body()
            self._leave_out_files(registry)
            if self.schema.map_renderers("media_type") == ["text/html"]:
                self.bar = "it answers with a page"
        except Exception as error:
            logger.exception("%s cannot be described", type(self.view).__name__)
            self.bar = f"drf-spectacular cannot describe it: {error}"[:300]
        return True

    # -- names and texts ---------------------------------------------------------------

    def _tool_name(self) -> str:
        """Return the site's own operationId, or the words of the path and action."""
        operation_id: str = self.about["operationId"]
        if operation_id != AutoSchema.get_operation_id(self.schema):
            return operation_id
        name, verb = self.options.get("name"), self.action
        if not isinstance(self.view, ViewSetMixin):
            verb = self.schema.method_mapping[verb]
            return f"{name}_{verb}" if name else operation_id
        methods = {m for m, a in self.view.action_map.items() if a == verb}
        path = self.path.rstrip("/")
        if self.extra is not None:
            path = path.removesuffix(self.extra.url_path.strip("/"))
        words = name or re.sub(r"\{[^{}]*\}", "", re.sub(_ROOT, "", path))
        suffix = self.method if len(methods - {"head"}) > 1 else ""
        return snake_case(f"{words} {verb} {suffix}")

    def _description(self) -> str:
        """Return the action's text, or else a sentence about it and the view's text."""
        text: str = self.schema.get_description()
        of_view = get_doc(type(self.view))
        if text and (text != of_view or not isinstance(self.view, ViewSetMixin)):
            return text
        # The name of an action says little: other views may have it, too.
        sentence = f"{self.action.replace('_', ' ').capitalize()} ({self.path})."
        if self._model is not None and self.action in _SENTENCES:
            names = self._model._meta
            values = {"one": names.verbose_name, "many": names.verbose_name_plural}
            sentence = _SENTENCES[self.action] % values
        return f"{sentence} {of_view}".strip()

    def _soften_body(self) -> None:
        """Make the body of an extra action optional if the site does not describe it.

        In this case, drf-spectacular assumes the serializer of the viewset.
        """
        if self.method not in ("POST", "PUT", "PATCH") or not self._is_body_assumed():
            return
        body = self.about.get("requestBody")
        if body is None:
            self.remarks.append("nothing can be sent: add @extend_schema(request=…)")
        elif self.extra is not None and "serializer_class" not in self.extra.kwargs:
            body["required"] = False

    def _leave_out_files(self, registry: ComponentRegistry) -> None:
        """Leave out fields for files, which the document describes as texts.

        An operation that requires a file, or reads files itself, is barred.
        """
        serializer = force_instance(self.schema.get_request_serializer())
        body = self.about.get("requestBody", {})
        fields = getattr(serializer, "fields", {}).values() if body else ()
        files = [e for e in fields if isinstance(e, FileField) and not e.read_only]
        is_full = body.get("required") and self.method != "PATCH"
        if (is_full and any(file.required for file in files)) or "FILES" in self.reads:
            self.bar, files = "it wants a file", []
        for each in files:
            self.remarks.append(f"{each.field_name} is left out: no file can be sent")
            for media in body.get("content", {}).values():
                schema = media["schema"]
                if name := schema.get("$ref", "").rpartition("/")[2]:
                    schema = registry[name, "schemas"].schema
                properties = schema.get("properties", {})
                if each.field_name in properties:
                    # What is read-only becomes no parameter.
                    properties[each.field_name]["readOnly"] = True

    @cached_property
    def reads(self) -> Mapping[str, Set[str]]:
        """Names that the action's source reads from members of a request."""
        functions = [getattr(self.view, self.action)]
        is_list = not _LISTING.isdisjoint(unwrap(functions[0]).__code__.co_names)
        if isinstance(self.view, GenericAPIView) and is_list:
            functions += [self.view.get_queryset, self.view.filter_queryset]
            functions += [each.filter_queryset for each in self.view.filter_backends]
        return read_names(functions)

    def unsaid_remarks(self, inputs: Collection[str]) -> Iterator[str]:
        """Yield remarks on names that it reads but that are no parameters."""
        for member, names in self.reads.items():
            unsaid = sorted(n for n in names - {""} if argument_name(n) not in inputs)
            # "" stands for names that the source does not spell out.
            if unsaid or ("" in names and not self._is_documented(member)):
                what, line = ", ".join(unsaid) or "values", self._line(member, unsaid)
                yield f"it reads {what} of request.{member} by itself: write {line}"

    def _is_documented(self, member: str) -> bool:
        """Whether the site describes what clients send in a member of the request."""
        if member == "POST":
            return not self._is_body_assumed()
        return bool(self.schema.get_override_parameters())

    def _line(self, member: str, unsaid: Sequence[str]) -> str:
        """Return the line of code that would describe names of a member."""
        name = unsaid[0] if unsaid else "…"
        option = f'parameters=[OpenApiParameter("{name}", str)]'
        line = f"extend_schema({'request=…' if member == 'POST' else option})"
        if not isinstance(self.view, ViewSetMixin):
            return line
        return f"extend_schema_view({self.action}={line})({type(self.view).__name__})"

    def _is_body_assumed(self) -> bool:
        """Whether drf-spectacular falls back to the view's serializer for the body."""
        # The mark comes back only if drf-spectacular reaches this fallback.
        mark: Any = object()
        self.schema._get_serializer = lambda: mark
        try:
            return self.schema.get_request_serializer() is mark
        finally:
            del self.schema._get_serializer

    # -- who may use it ----------------------------------------------------------------

    def check_authentication(self) -> None:
        """Refuse a view that lets in none of the site's users, such as a webhook."""
        ways = [type(each) for each in self.view.get_authenticators()]
        usual = {*api_settings.DEFAULT_AUTHENTICATION_CLASSES, *_OWN_WAYS}
        if ways and not usual.intersection(ways):
            names = " and ".join(way.__name__ for way in ways)
            raise RegistrationError(
                f"{names} may let in others than the site's users, and as a tool any"
                " user would come in as if let in by it. If that is right, add"
                " stand_in=True."
            )

    @property
    def permissions(self) -> tuple[str, ...]:
        """The permissions that `DjangoModelPermissions` of the view demands."""
        needed: list[str] = []
        # A permission that reads `user` raises: it is skipped, with those after it.
        with suppress(Exception):
            self.view.request.__class__ = _CallerlessRequest
            for each in self.view.get_permissions():
                if type(each).has_permission is DjangoModelPermissions.has_permission:
                    needed += each.get_required_permissions(self.method, self._model)
        return tuple(needed)

    @cached_property
    def _model(self) -> Any:
        return get_view_model(self.view, emit_warnings=False)


def _refuse_caller(_: object) -> None:
    # Do not raise AttributeError: getattr() would hide it.
    raise RuntimeError("nobody calls yet")


class _CallerlessRequest(Request):
    user: Any = property(_refuse_caller)


_ADDS: Final = ToolHints(read_only=False, destructive=False)
_LISTING: Final = frozenset({"list", "get_queryset", "filter_queryset"})
"""Names of methods that an action calls if it lists rows."""
_PLACE_OPTIONS: Final = ("prefix", "version")
"""Options that choose among several places of a view in the URLconf."""
_SENTENCES: Final = {
    "list": "List %(many)s.",
    "retrieve": "Get one %(one)s.",
    "create": "Create one %(one)s.",
    "update": "Replace one %(one)s.",
    "partial_update": "Change one %(one)s; what is left out stays.",
    "destroy": "Delete one %(one)s.",
}
_OWN_WAYS: Final = (
    authentication.BasicAuthentication,
    authentication.RemoteUserAuthentication,
    authentication.SessionAuthentication,
    authentication.TokenAuthentication,
)
