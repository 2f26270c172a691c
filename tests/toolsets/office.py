"""An admin of a site's own that overrides what can be overridden, and its addresses."""

from __future__ import annotations

from datetime import date
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import include, path
from django.utils.html import format_html

from tests.drill.models import Country, Customer, Invoice, Item, Ledger, Order, Stock

Rows = QuerySet[Any]


class Office(admin.AdminSite):
    site_header = "The office"

    def get_app_list(self, request: HttpRequest, app_label: Any = None) -> Any:
        links = {"name": "Links", "models": [{"name": "Sales", "admin_url": "/sales/"}]}
        return [*super().get_app_list(request, app_label), links]


office = Office(name="office")


class LargeFilter(admin.SimpleListFilter):
    title = "size"
    parameter_name = "size"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("large", "Large orders"), ("small", "Small <orders>")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        wanted = {"large": {"total__gte": 100}, "small": {"total__lt": 100}}
        return queryset.filter(**wanted.get(str(self.value()), {}))


class KeyFilter(LargeFilter):
    title = "key"
    parameter_name = "customer__api_key"


class ItemForm(forms.ModelForm):  # type: ignore[type-arg]
    key = forms.CharField(
        initial=lambda: "made today", required=False, show_hidden_initial=True
    )


class ItemInline(admin.TabularInline):  # type: ignore[type-arg]
    model = Item
    form = ItemForm
    max_num = 3
    extra = 1
    fields = ("stock", "amount", "hidden", "key")


class CustomerOrderInline(admin.StackedInline):  # type: ignore[type-arg]
    model = Order
    extra = 0
    fields = ("number", "total", "weight", "created", "due", "suppliers", "label")
    readonly_fields = ("label",)

    def label(self, order: Order) -> str:
        return f"Order {order.number}"


class OrderForm(forms.ModelForm):  # type: ignore[type-arg]
    weight = forms.FloatField(required=False, localize=True)
    due = forms.DateField(required=False, widget=forms.SelectDateWidget())
    remark = forms.CharField(
        initial=lambda: "made today", required=False, show_hidden_initial=True
    )
    secret_code = forms.CharField(required=False)
    facts = forms.JSONField(
        initial=lambda: {"api_key": "s3cret", "n": 1}, required=False
    )

    def clean_number(self) -> str:
        number: str = self.cleaned_data["number"]
        if number.startswith("X"):
            text = format_html("<i>No</i> number begins with {}.", "X")
            raise forms.ValidationError(text)
        return number


@admin.action(description="Send the orders", permissions=["change"])
def send(model_admin: Any, request: HttpRequest, queryset: Rows) -> None:
    count = queryset.update(state=Order.State.SENT)
    model_admin.message_user(request, format_html("<b>{}</b> sent.", count))


@admin.action(description="Export")
def export(model_admin: Any, request: HttpRequest, queryset: Rows) -> HttpResponse:
    numbers = "\n".join(queryset.values_list("number", flat=True))
    return HttpResponse(numbers, content_type="text/csv")


@admin.action(description="Ask first")
def ask(model_admin: Any, request: HttpRequest, queryset: Rows) -> HttpResponse:
    queryset.update(note="asked")
    return TemplateResponse(request, "admin/index.html", {})


@admin.action(description="Fail")
def fail(model_admin: Any, request: HttpRequest, queryset: Rows) -> None:
    model_admin.message_user(request, "Nobody is there.", messages.ERROR)


@admin.action(description="Go on")
def go_on(model_admin: Any, request: HttpRequest, queryset: Rows) -> HttpResponse:
    return HttpResponseRedirect("/wizard/?step=1")


@admin.register(Order, site=office)
class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = OrderForm
    list_display = ("number", "state", "price", "customer", "is_large", "created")
    list_filter = ("state", LargeFilter, KeyFilter, "customer__name", "suppliers__name")
    show_facets = admin.ShowFacets.ALWAYS
    list_per_page = 5
    search_fields = ("number", "customer__name")
    autocomplete_fields = ("customer",)
    radio_fields = {"state": admin.VERTICAL}
    filter_horizontal = ("suppliers",)
    inlines = (ItemInline,)
    actions = (send, export, ask, fail, go_on)
    ordering = ("number",)

    @admin.display(ordering="total")
    def price(self, order: Order) -> str:
        return format_html("<b>{}</b> &euro;", order.total)

    @admin.display(boolean=True)
    def is_large(self, order: Order) -> bool:
        return order.total >= 100

    def get_queryset(self, request: HttpRequest) -> Rows:
        return super().get_queryset(request).filter(hidden=False)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        sent = obj is not None and obj.state == Order.State.SENT
        return ("price", "number", "total") if sent else ("price",)

    def get_form(
        self, request: Any, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **options)
        if "note" in form.base_fields:
            form.base_fields["note"].help_text = "For the office."
        return form

    def get_exclude(self, request: Any, obj: Any = None) -> Any:
        return () if request.user.is_superuser else ("margin",)

    def save_model(self, request: Any, obj: Any, form: Any, change: bool) -> None:
        obj.margin += 1
        super().save_model(request, obj, form, change)
        if obj.note == "explode":
            raise RuntimeError("The note exploded.")


@admin.register(Customer, site=office)
class CustomerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("__str__", "email", "country")
    search_fields = ("name",)
    inlines = (CustomerOrderInline,)

    def get_queryset(self, request: HttpRequest) -> Rows:
        return super().get_queryset(request).exclude(name__startswith="Gone")


@admin.register(Invoice, site=office)
class InvoiceAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    raw_id_fields = ("order",)
    list_filter = ("paid",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        paid = obj is not None and obj.paid
        return super().has_change_permission(request, obj) and not paid


@admin.register(Stock, site=office)
class StockAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("sku", "level")
    list_editable = ("level",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"sku": f"S-{date.today().year}", "level": "7"}


@admin.register(Country, site=office)
class CountryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    search_fields = ("code",)
    list_display = ("name", "initial")

    @admin.display(ordering="code")
    def initial(self, row: Country) -> str:
        return row.code[:1]


office.register(User, UserAdmin)


@admin.register(Ledger, site=office)
class LedgerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ("key", "worker")

    def changeform_view(self, *_: Any, **__: Any) -> HttpResponse:
        return HttpResponse("a page of its own")


MODELS: list[type[Model]] = [Order, Customer, Invoice, Stock, Country, User]

urlpatterns = [
    path("office/", office.urls),
    path("", include("tests.drill.urls")),
]
