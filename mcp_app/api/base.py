"""What all views of the API share; the setting REST_FRAMEWORK has no effect here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from django.core.exceptions import (
    PermissionDenied,
    SuspiciousOperation,
    ValidationError,
)
from django.db import OperationalError
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular import drainage, generators, openapi
from drf_spectacular.utils import OpenApiParameter, inline_serializer
from rest_framework import exceptions, negotiation, parsers, renderers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import CharField, JSONField
from rest_framework.views import set_rollback
from rest_framework.viewsets import ViewSet

from mcp_app.api.options import authentication_classes
from mcp_app.conf import MIB
from mcp_app.interface.rules import visible
from mcp_app.models.tokens import BEGINNING
from mcp_app.protocol import jsonrpc
from mcp_app.protocol.errors import ParseError
from mcp_app.publishing.bundle import BundleConflict, BundleRefused
from mcp_app.publishing.publication import NotReady, OutOfDate, PublicationRefused
from mcp_app.publishing.rights import require_right
from mcp_app.publishing.stop_targets import TargetMissing

_TEXTS: Final = {each: CharField() for each in ("detail", "code")}
_ERROR: Final = inline_serializer("Error", {**_TEXTS, "problems": JSONField()})
_TOKEN: Final = re.compile(rf"{BEGINNING}[\w-]{{40}}")
_TYPES: Final = {list: "array", str: "string", int: "integer", bool: "boolean"}
Values: TypeAlias = type | tuple[str, ...]
"""The values that a parameter, or a member of a body, takes: a type, or texts."""


class MatchMissing(Exception):
    """The request lacks `If-Match`, with the ETag of what the person looked at."""


_ANSWERS: Final[Mapping[type[Exception], tuple[int, str, str]]] = {
    NotReady: (422, "must_be_fixed", ""),
    OutOfDate: (412, "out_of_date", ""),
    BundleConflict: (
        409,
        "conflict",
        "Look with check=1, and send its ETag as If-Match to overwrite these.",
    ),
    BundleRefused: (422, "must_be_fixed", ""),
    PublicationRefused: (409, "refused", ""),
    PermissionDenied: (403, "permission_denied", ""),
    MatchMissing: (428, "if_match_missing", "Send the ETag as the header If-Match."),
    ParseError: (400, "parse_error", ""),
    TargetMissing: (404, "not_found", ""),
    Http404: (404, "not_found", "There is nothing at this address."),
    SuspiciousOperation: (400, "invalid", "The request cannot be read."),
    ValidationError: (400, "invalid", ""),
    OperationalError: (503, "unavailable", "The database is busy. Try again."),
}
"""Status, code and text by the first class that fits; "" means the error's own text."""


def answer_error(error: Exception, context: object) -> Response | None:
    """Return the answer to a request that failed; None for a fault of our own."""
    answer = next((a for kind, a in _ANSWERS.items() if isinstance(error, kind)), None)
    if isinstance(error, exceptions.APIException):
        detail: Any = error.detail
        text = detail.get("detail", detail) if isinstance(detail, dict) else detail
        answer = error.status_code, str(error.default_code), str(text)
    if answer is None:
        return None
    set_rollback()
    status, code, detail = answer
    headers = {"Retry-After": "1"} if isinstance(error, OperationalError) else {}
    if challenge := getattr(error, "auth_header", ""):
        headers["WWW-Authenticate"] = challenge
    problems: Any = getattr(error, "findings", ()) or getattr(error, "problems", ())
    if isinstance(error, ValidationError):
        problems, detail = error.messages, " ".join(error.messages)
    body = {"detail": detail or str(error), "code": code, "problems": [*problems]}
    return Response(body, status, headers=headers)


class NoParser(parsers.BaseParser):
    """Leaves the body to `_read_body`, also if the CSRF check wants to read a form."""

    media_type = "*/*"

    def parse(self, stream: Any, *rest: object, **more: object) -> dict[str, Any]:
        return {}


class JsonRenderer(renderers.BaseRenderer):
    media_type, format, charset = "application/json", "json", None

    def render(self, data: Any, *rest: object, **more: object) -> bytes:
        return b"" if data is None else jsonrpc.write(data)


class Table(openapi.AutoSchema):
    """Describes a view in OpenAPI by its attributes, not by the site's schema class."""

    view: Any

    def is_excluded(self) -> bool:
        # Only `SchemaView` sets this: the site's own document leaves these views out.
        return not getattr(self.registry, "is_of_staff", False)

    def get_operation_id(self) -> str:
        return f"{self.view.basename}_{self.view.action}".replace("-", "_")

    def get_override_parameters(self) -> list[Any]:
        params = [OpenApiParameter("id", str, "path")] if "{id}" in self.path else []
        if (is_needed := self.view.if_match.get(self.view.action)) is not None:
            name = "If-Match"
            params.append(OpenApiParameter(name, str, "header", required=is_needed))
        for name, values in self.view.parameters.get(self.view.action, {}).items():
            is_list = values is list
            schema = _schema_of(str if is_list else values)
            params.append(OpenApiParameter(name, schema, many=is_list))
        return params

    def get_request_serializer(self) -> Any:
        members = self.view.members.get(self.view.action, {})
        if members is None:
            return {"application/json": {"type": "object"}}
        properties = {name: _schema_of(values) for name, values in members.items()}
        schema = {"type": "object", "properties": properties}
        return {"application/json": {**schema, "additionalProperties": False}}

    def get_response_serializers(self) -> Any:
        answers, action = self.view.answers, self.view.action
        answer = answers[action] if action in answers else answers["retrieve"]
        write_errors = () if self.method == "GET" else (409, 412, 428, 503)
        refusals = dict.fromkeys((400, 401, 403, 404, 422, *write_errors), _ERROR)
        status = 201 if self.view.action == "create" else 200
        return {status if answer else 204: answer, **refusals}

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False


def _schema_of(values: Values) -> dict[str, Any]:
    if isinstance(values, tuple):
        return {"type": "string", "enum": [*values]}
    return {"type": _TYPES[values]}


class StaffView(ViewSet):
    """Answers staff, and no token of an AI client; says what each action takes."""

    permission_classes, throttle_classes = [], []
    parser_classes, renderer_classes = [NoParser], [JsonRenderer]
    content_negotiation_class = negotiation.DefaultContentNegotiation
    metadata_class = versioning_class = None
    schema = Table()
    answers: Mapping[str, Any] = {}
    """The serializer of each action's answer; None for an answer without a body."""
    parameters: Mapping[str, Mapping[str, Values]] = {}
    """The query parameters of each action; the type `list` allows a parameter twice."""
    members: Mapping[str, Mapping[str, Values] | None] = {}
    """The members of each action's body; None if the action reads the body itself."""
    if_match: Mapping[str, bool] = {}
    """The actions that take an ETag, and whether they must have one."""

    @property
    def default_response_headers(self) -> dict[str, str]:
        return {**super().default_response_headers, "Cache-Control": "no-store"}

    def get_authenticators(self) -> list[Any]:
        return [each() for each in authentication_classes()]

    def get_exception_handler(self) -> Any:
        return answer_error

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        return JsonRenderer(), JsonRenderer.media_type

    def check_permissions(self, request: Request) -> None:
        sent = (*request.headers.values(), *request.query_params.values())
        if any(_TOKEN.search(str(value)) for value in sent):
            raise exceptions.AuthenticationFailed
        user: Any = request.user
        if not all(getattr(user, name, False) for name in ("is_active", "is_staff")):
            self.permission_denied(
                request, "This is for active staff: is_staff is off."
            )
        user.came_over = _("Over REST.")

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # At all addresses without a view of their own, `StaffView` itself answers.
        if not self.answers:
            raise Http404
        if self.action is None:
            raise exceptions.MethodNotAllowed(request.method or "")
        fields = self.parameters.get(self.action, {})
        texts = {
            # A parameter that is given twice is no text.
            name: values if fields.get(name) is list or len(values) > 1 else values[0]
            for name, values in request.query_params.lists()
        }
        self.query = read_values(texts, fields)
        members = self.members.get(self.action, {})
        self.body = {} if members is None else read_values(_read_body(request), members)


def _read_body(request: Request) -> Any:
    """Return the JSON of the body; REST framework ignores a body without a length."""
    body = request._request.read(MIB + 1)
    media_type = request.content_type.partition(";")[0].strip()
    if media_type != "application/json" and (body or "multipart" in media_type):
        raise exceptions.UnsupportedMediaType(media_type)
    return jsonrpc.read(body) if body else {}


def etags_of_request(request: Request) -> list[str] | None:
    """Return the tags of `If-Match` with their quotes; None without it (RFC 9110)."""
    value = request.headers.get("If-Match")
    if value is None:
        return None
    return [tag.strip().removeprefix("W/") for tag in value.split(",")]


def require_view(by: Any, model: Any) -> None:
    """Raise `PermissionDenied` if the lists of the admin would not show these rows."""
    kind = model._meta.model_name
    if not by.has_perm(f"mcp_app.change_{kind}"):
        require_right(by, f"view_{kind}")


def read_values(values: Any, fields: Mapping[str, Values]) -> dict[str, Any]:
    """Return the values, numbers as integers; raise `ParseError` if one is unfit."""
    if not isinstance(values, dict):
        raise exceptions.ParseError("The body must be an object.")
    read = {}
    for name, value in values.items():
        # An unknown name gets (), an empty choice, so that no value fits.
        field = fields.get(name, ())
        is_number = field is int and re.fullmatch("[0-9]{1,18}", str(value))
        read[name] = int(value) if is_number else value
        fits = type(read[name]) is field
        if isinstance(field, tuple):
            fits = value in field
        if not fits or "\0" in str(value):
            shapes = ((key, _schema_of(each)) for key, each in fields.items())
            takes = [f"{k} ({'|'.join(s.get('enum', [s['type']]))})" for k, s in shapes]
            text = f"{name!r} is not one of: {', '.join(takes) or 'nothing'}"
            if name in fields:
                text = f"{visible(str(value))[:100]} does not fit: {', '.join(takes)}"
            raise exceptions.ParseError(text)
    return read


class SchemaView(StaffView):
    answers = {"retrieve": {"type": "object"}}

    def retrieve(self, request: Request) -> Response:
        """Return the document of all operations."""
        generator = generators.SchemaGenerator(urlconf="mcp_app.api_urls")
        vars(generator.registry)["is_of_staff"] = True
        with drainage.GENERATOR_STATS.silence():
            document = generator.get_schema(None, True)
        servers = [{"url": request.path.removesuffix("/schema/")}]
        return Response({**document, "servers": servers})
