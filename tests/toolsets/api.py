"""An API of the small shop, with all that views of Django REST framework can have."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import include, path
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import generics, parsers, serializers, viewsets
from rest_framework.authentication import BaseAuthentication
from rest_framework.decorators import action, api_view, authentication_classes
from rest_framework.filters import BaseFilterBackend, OrderingFilter, SearchFilter
from rest_framework.pagination import PageNumberPagination
from rest_framework.permissions import BasePermission, DjangoModelPermissions
from rest_framework.renderers import TemplateHTMLRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.routers import DefaultRouter
from rest_framework.throttling import UserRateThrottle
from rest_framework.urlpatterns import format_suffix_patterns
from rest_framework.versioning import (
    AcceptHeaderVersioning,
    NamespaceVersioning,
    URLPathVersioning,
)
from rest_framework.views import APIView

from tests.auth.drf_classes import NamedToken
from tests.drill.models import Order, Stock


class PartnerKey(BaseAuthentication):
    """The signature of a partner, who is no user."""

    def authenticate(self, request: Request) -> Any:
        return (User(username="partner"), None) if "X-Sign" in request.headers else None


class IsNotClosed(BasePermission):
    message = "This order is closed."

    def has_object_permission(self, request: Request, view: Any, obj: Any) -> bool:
        return request.method == "GET" or obj.state != Order.State.BACK


class OrderRights(DjangoModelPermissions):
    perms_map = {**DjangoModelPermissions.perms_map, "DELETE": ["drill.delete_order"]}


class ByState(BaseFilterBackend):
    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        state = request.query_params.get("state")
        return queryset.filter(state=state) if state else queryset

    def get_schema_operation_parameters(self, view: Any) -> Any:
        schema = {"type": "string", "enum": list(Order.State.values)}
        return [{"name": "state", "in": "query", "required": False, "schema": schema}]


class Pages(PageNumberPagination):
    page_size = 2
    page_size_query_param = "size"


class Sends(UserRateThrottle):
    rate = "3/hour"


class HeaderVersioning(AcceptHeaderVersioning):
    allowed_versions = ("1", "2")


class OrderSerializer(serializers.ModelSerializer[Order]):
    margin = serializers.IntegerField(default=7)

    class Meta:
        model = Order
        fields: tuple[str, ...] = (
            "id",
            "number",
            "state",
            "total",
            "created",
            "customer",
            "margin",
        )
        read_only_fields = ("state",)

    def validate_total(self, total: Any) -> Any:
        if total < 0:
            raise serializers.ValidationError("A total is never negative.")
        return total


class SecondSerializer(OrderSerializer):
    class Meta(OrderSerializer.Meta):
        fields = (*OrderSerializer.Meta.fields, "note")


class NoteSerializer(serializers.Serializer[Any]):
    note = serializers.CharField(max_length=20)


class OrderViewSet(viewsets.ModelViewSet[Order]):
    """Orders of the shop."""

    authentication_classes = [NamedToken]
    queryset = Order.objects.filter(hidden=False).order_by("pk")
    permission_classes = [OrderRights, IsNotClosed]
    filter_backends = [ByState, SearchFilter, OrderingFilter]
    search_fields = ["number"]
    ordering_fields = ["number", "total"]
    pagination_class = Pages
    versioning_class = HeaderVersioning

    def get_queryset(self) -> QuerySet[Order]:
        # As sites do: it must not be asked before somebody calls.
        rows = super().get_queryset()
        staff = self.request.user.is_staff
        return rows if staff else rows.exclude(number__startswith="S")

    def get_serializer_class(self) -> Any:
        return SecondSerializer if self.request.version == "2" else OrderSerializer

    @action(detail=True, methods=["post"], throttle_classes=[Sends])
    def send(self, request: Request, pk: Any = None) -> Response:
        """Send an order to its customer."""
        order = self.get_object()
        if order.state != Order.State.OPEN:
            return Response({"detail": "It was sent already."}, status=409)
        order.state = Order.State.SENT
        order.save()
        return Response({"state": order.state})

    @extend_schema(request=NoteSerializer)
    @action(detail=True, methods=["post"], url_path="add-note")
    def note(self, request: Request, pk: Any = None) -> Response:
        given = NoteSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        order = self.get_object()
        order.note = given.validated_data["note"]
        order.save()
        return Response(status=204)

    @note.mapping.delete
    def unnote(self, request: Request, pk: Any = None) -> Response:
        Order.objects.filter(pk=self.get_object().pk).update(note="")
        return Response(status=204)

    @action(detail=False, serializer_class=None)
    def export(self, request: Request) -> Any:
        return HttpResponse("number,total\n", content_type="text/csv")


class StockSerializer(serializers.ModelSerializer[Stock]):
    class Meta:
        model = Stock
        fields = ("sku", "level", "price")


@extend_schema_view(list=extend_schema(summary="All that there is"))
class StockViewSet(viewsets.ModelViewSet[Stock]):
    """What is in stock."""

    schema = AutoSchema()
    authentication_classes = [NamedToken]
    queryset = Stock.objects.order_by("sku")
    serializer_class = StockSerializer
    lookup_field = "sku"
    lookup_value_regex = "[^/]+"
    parser_classes = [parsers.FormParser]

    @action(detail=False)
    def secret(self, request: Request) -> Response:
        return Response({"secret": 1})


class StockListView(generics.ListCreateAPIView[Stock]):
    authentication_classes = [NamedToken]
    queryset = Stock.objects.order_by("sku")
    serializer_class = StockSerializer


class HookView(APIView):
    authentication_classes = [PartnerKey]

    def post(self, request: Request) -> Response:
        return Response({"user": str(request.user)})


class PaperSerializer(serializers.Serializer[Any]):
    paper = serializers.ImageField()
    title = serializers.CharField()


class PaperView(APIView):
    serializer_class = PaperSerializer

    def post(self, request: Request) -> Response:
        return Response({})


class PhotoSerializer(serializers.Serializer[Any]):
    title = serializers.CharField()
    photo = serializers.ImageField(required=False)
    place = serializers.CharField(required=False)


class ByYear(BaseFilterBackend):
    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        return queryset.filter(level=request.GET.get("year", 0))


class Photos(viewsets.GenericViewSet[Stock]):
    """Photos, as sites write views that say little of themselves."""

    authentication_classes = [NamedToken]
    serializer_class = PhotoSerializer
    filter_backends = [ByYear, ByState]
    queryset = Stock.objects.all()

    def get_queryset(self) -> QuerySet[Stock]:
        # Not request.query_params["a comment"].
        return super().get_queryset().filter(level__gte=len(self.request.GET.dict()))

    def list(self, request: Request) -> Response:
        """Photos; request.FILES is not read."""
        words = request.query_params.get("q", "") + request.query_params["sort"]
        rows = self.filter_queryset(self.get_queryset())
        return Response({"words": words, "rows": len(rows)})

    def create(self, request: Request) -> Response:
        return Response({"got": request.data})

    def partial_update(self, request: Request, pk: str) -> Response:
        return Response({"got": request.data})

    @action(detail=False, methods=["post"])
    def upload(self, request: Request) -> Response:
        return Response({"name": request.FILES["file"].name})

    @action(detail=False, methods=["post"], serializer_class=None)
    def rate(self, request: Request) -> Response:
        return Response({"stars": request.POST.getlist("stars")})

    @action(detail=False)
    def latest(self, request: Request) -> Response:
        return self.list(request)

    @action(detail=False)
    def download(self, request: Request) -> HttpResponse:
        headers = {"Content-Disposition": 'attachment; filename="a.html"'}
        return HttpResponse("<p>a</p>", headers=headers)

    @action(detail=False, renderer_classes=[TemplateHTMLRenderer])
    def page(self, request: Request) -> Response:
        return Response({})


class ByMany(BaseFilterBackend):
    def filter_queryset(self, request: Any, queryset: Any, view: Any) -> Any:
        return queryset

    def get_schema_operation_parameters(self, view: Any) -> Any:
        schema = {"type": "string"}
        return [
            {"name": f"p{n:02}", "in": "query", "schema": schema} for n in range(60)
        ]


class WideView(generics.ListAPIView[Stock]):
    authentication_classes = [NamedToken]
    filter_backends = [ByMany]
    queryset = Stock.objects.order_by("sku")
    serializer_class = StockSerializer


class VersionView(APIView):
    """Says its version."""

    authentication_classes = [NamedToken]

    def get(self, request: Request, **values: Any) -> Response:
        return Response({"version": request.version})


class PathVersionView(VersionView):
    versioning_class = URLPathVersioning


class Names(NamespaceVersioning):
    allowed_versions = ("old", "new")


class NamespaceVersionView(VersionView):
    versioning_class = Names


@extend_schema(parameters=[OpenApiParameter("X-Reason", str, "header")])
@api_view(["GET", "POST"])
@authentication_classes([NamedToken])
def hello(request: Request) -> Response:
    """Greet whoever calls."""
    reason = request.headers.get("X-Reason")
    return Response({"hello": str(request.user), "reason": reason})


router = DefaultRouter()
router.register("orders", OrderViewSet)
router.register("stock", StockViewSet)
router.register("photos", Photos, basename="photo")
old = [path("state/", NamespaceVersionView.as_view())]
new = [path("state/", NamespaceVersionView.as_view())]

urlpatterns = [
    path("api/", include(router.urls)),
    path("api/stocks/", StockListView.as_view()),
    path("api/wide/", WideView.as_view()),
    path("api/hook/", HookView.as_view()),
    path("api/paper/", PaperView.as_view()),
    *format_suffix_patterns([path("api/hello/", hello)]),
    path("api/<version>/version/", PathVersionView.as_view()),
    path("api/v1/", include((old, "old"))),
    path("api/v2/", include((new, "new"))),
    path("api/v3/", include((new, "unknown"))),
    path("api/twice/", VersionView.as_view()),
    path("twice/", VersionView.as_view()),
]
