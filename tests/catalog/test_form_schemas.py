"""Django forms as parameters of tools."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final
from uuid import UUID

import pytest
from django import forms
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db import models
from django.test import override_settings

from mcp_app import SyncContext
from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import RegistrationError
from mcp_app.protocol.json_types import JsonObject
from mcp_app.test import Client, Refused
from tests.drill.models import Country, Order

pytestmark = pytest.mark.django_db

ZONE: Final = dt.timezone(dt.timedelta(hours=5))
KEY: Final = "5f6ea5ab-4ad2-4b5b-9f0f-3f3c6c1f5c1a"
URL: Final = "https://a.de"
NUMBERS: Final = [(1, "One")]
TYPED: Final[Any] = {"choices": NUMBERS, "coerce": int, "required": False}
STATES: Final = [("", "---"), ("a", "Anew"), ("Old", [("b", "B")])]


class Span(forms.MultiValueField):
    """From one number to another."""

    def __init__(self, **options: Any) -> None:
        fields = forms.IntegerField(), forms.IntegerField()
        widget = forms.MultiWidget([forms.NumberInput, forms.NumberInput])
        super().__init__(fields, widget=widget, **options)

    def compress(self, values: Any) -> Any:
        return tuple(values)


def limited(schema: JsonObject, **members: object) -> JsonObject:
    return {**schema, **members}


TEXT: Final[JsonObject] = {"type": "string"}
WHOLE: Final[JsonObject] = {"type": "integer"}
NUMBER: Final[JsonObject] = {"type": "number"}
YES: Final[JsonObject] = {"type": "boolean"}
YES_OR_NULL: Final[JsonObject] = {"type": ["boolean", "null"]}
DAY: Final = limited(TEXT, format="date")
AB: Final = limited(TEXT, enum=["a", "b"])
SEVERAL: Final = {"type": "array", "items": AB, "minItems": 1}
ONE: Final = limited(WHOLE, enum=[1])
ONES: Final = {"type": ["array", "null"], "items": ONE}
PAIR: Final = {"prefixItems": [WHOLE, WHOLE], "minItems": 2, "maxItems": 2}
FOLDER: Final = str(Path(__file__).parent)
FILE: Final = f"{FOLDER}/__init__.py"
MOMENT: Final = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)
EARLY: Final = "0001-01-01T00:00:00+23:59"
HERE: Final = dt.datetime(2026, 1, 31, 8, tzinfo=ZONE)
LAST: Final = dt.date(2026, 1, 31)
BOXES: Final = forms.CheckboxSelectMultiple
SPAN: Final = dt.timedelta(days=1, hours=2)

FIELDS: Final[list[tuple[forms.Field, JsonObject, object, object]]] = [
    (forms.CharField(max_length=9), limited(TEXT, maxLength=9), " a ", "a"),
    (forms.CharField(widget=forms.HiddenInput), TEXT, "a", "a"),
    (forms.SlugField(), TEXT, "a-b", "a-b"),
    (forms.RegexField("^a+$"), TEXT, "aa", "aa"),
    (forms.ComboField(fields=[forms.CharField(max_length=3)]), TEXT, "abc", "abc"),
    (
        forms.EmailField(),
        limited(TEXT, format="email", maxLength=320),
        "a@b.de",
        "a@b.de",
    ),
    (forms.URLField(assume_scheme="https"), limited(TEXT, format="uri"), URL, URL),
    (forms.UUIDField(), limited(TEXT, format="uuid"), KEY, UUID(KEY)),
    (forms.GenericIPAddressField(), limited(TEXT, maxLength=39), "::1", "::1"),
    (forms.JSONField(), {}, {"a": [1]}, {"a": [1]}),
    (forms.JSONField(), {}, "text", "text"),
    (
        forms.IntegerField(min_value=0, localize=True),
        limited(WHOLE, minimum=0),
        1234,
        1234,
    ),
    (forms.FloatField(localize=True), NUMBER, 1.5, 1.5),
    (forms.DecimalField(localize=True), NUMBER, 1.25, Decimal("1.25")),
    (forms.BooleanField(required=False), YES_OR_NULL, False, False),
    (
        forms.BooleanField(widget=forms.RadioSelect(choices=[(1, "Yes")])),
        YES,
        True,
        True,
    ),
    (forms.NullBooleanField(required=False), YES_OR_NULL, None, None),
    (forms.NullBooleanField(), YES, False, False),
    (forms.DateField(input_formats=["%d.%m.%Y"]), DAY, "2026-01-31", LAST),
    (forms.DateField(widget=forms.SelectDateWidget), DAY, "2026-01-31", LAST),
    (forms.TimeField(), TEXT, "08:30", dt.time(8, 30)),
    (forms.DateTimeField(), TEXT, "2026-01-31T08:00:00Z", MOMENT),
    (forms.DateTimeField(), TEXT, "2026-01-31T08:00", HERE),
    (forms.SplitDateTimeField(), TEXT, "2026-01-31T08:00:00Z", MOMENT),
    (forms.DurationField(), TEXT, "P1DT2H", SPAN),
    (forms.ChoiceField(choices=STATES), AB, "b", "b"),
    (
        forms.TypedChoiceField(choices=NUMBERS, coerce=int),
        ONE,
        1,
        1,
    ),
    (models.IntegerField(choices=NUMBERS).formfield(), ONE, 1, 1),
    (forms.ChoiceField(choices=lambda: STATES), TEXT, "a", "a"),
    (forms.MultipleChoiceField(choices=STATES, widget=BOXES), SEVERAL, ["b"], ["b"]),
    (forms.TypedMultipleChoiceField(**TYPED), ONES, [1], [1]),
    (forms.FilePathField(FOLDER, match="^__i"), limited(TEXT, enum=[FILE]), FILE, FILE),
    (Span(), {"type": "array", **PAIR}, [3, 4], (3, 4)),
]


Everything: Any = type(
    "Everything",
    (forms.Form,),
    {f"f{at}": field for at, (field, *_) in enumerate(FIELDS)},
)


def _client(registry: Registry) -> Client:
    own: Any = type("Own", (Client,), {"_registry": registry})
    client: Client = own(User.objects.create_user("ada"))
    return client


@override_settings(LANGUAGE_CODE="de", TIME_ZONE="Asia/Karachi")
def test_each_class_of_field() -> None:
    """What a client sends is what the function reads, whatever the site's language."""
    registry, received = Registry(), list[object]()

    @registry.tool
    def fill_in(form: Everything) -> None:
        received.extend(form.cleaned_data.values())

    client = _client(registry)
    [tool] = client.tools()
    schema = tool["inputSchema"]
    assert schema["additionalProperties"] is False
    for at, (_field, expected, _value, _cleaned) in enumerate(FIELDS):
        own = schema["properties"][f"f{at}"]
        assert own.pop("description")
        own.pop("examples", None)
        assert own == expected
    client.call("fill_in", **{f"f{at}": each[2] for at, each in enumerate(FIELDS)})
    assert received == [each[3] for each in FIELDS]


class TicketForm(forms.Form):
    title = forms.CharField(max_length=20, help_text="<b>Short</b>, please")
    state = forms.ChoiceField(choices=STATES, initial="a")
    due = forms.DateField(required=False, initial=lambda: dt.date(2026, 1, 1))
    urgent = forms.BooleanField(required=False, initial=True)
    country: Any = forms.ModelChoiceField(Country.objects.none(), required=False)
    groups = forms.ModelMultipleChoiceField(Group.objects.all(), required=False)
    photo = forms.FileField(required=False)
    fixed = forms.CharField(disabled=True, initial="x")
    locked = forms.CharField(required=False)
    prefix = "ticket"

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        country: Any = self.fields["country"]
        country.queryset = Country.objects.filter(hidden=False)
        self.fields["locked"].disabled = True

    def clean(self) -> None:
        if self.cleaned_data.get("title") == "nothing":
            raise ValidationError("There is nothing to do.")


@pytest.fixture
def desk() -> Client:
    registry = Registry()

    @registry.tool(read_only=False)
    def open_ticket(ctx: SyncContext, times: int, form: TicketForm) -> dict[str, Any]:
        """Open a ticket.

        Args:
            times: How often.
            state: How old it is.
        """
        assert form.is_bound
        values = {name: str(value) for name, value in form.cleaned_data.items()}
        return {**values, "times": times, "user": str(ctx.user())}

    return _client(registry)


def test_a_form_beside_other_parameters(desk: Client) -> None:
    [tool] = desk.tools()
    assert tool["inputSchema"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["times", "title"],
        "properties": {
            "times": {"type": "integer", "description": "How often."},
            "title": {
                "type": "string",
                "maxLength": 20,
                "description": "Short, please.",
            },
            "state": {
                "type": "string",
                "enum": ["a", "b"],
                "description": "How old it is. a: Anew.",
                "default": "a",
            },
            "due": {
                "type": ["string", "null"],
                "format": "date",
                "description": "Due.",
            },
            "urgent": {
                "type": ["boolean", "null"],
                "description": "Urgent.",
                "default": True,
            },
            "country": {"type": ["integer", "null"], "description": "Country."},
            "groups": {
                "type": ["array", "null"],
                "items": {"type": "integer"},
                "description": "Groups.",
            },
            "locked": {"type": ["string", "null"], "description": "Locked."},
        },
    }
    country = Country.objects.create(code="de", name="land")
    group = Group.objects.create(name="first")
    # What is left out is as the form begins; null is an empty input.
    assert desk.call("open_ticket", times=2, title="mend").data == {
        **{"title": "mend", "state": "a", "due": "2026-01-01", "urgent": "True"},
        **{"country": "None", "groups": "<QuerySet []>", "photo": "None"},
        **{"fixed": "x", "locked": "", "times": 2, "user": "ada"},
    }
    told = desk.call(
        "open_ticket",
        times="2",
        title="mend",
        state="b",
        due=None,
        urgent=False,
        country=country.pk,
        groups=[group.pk],
    ).data
    assert (told["state"], told["due"]) == ("b", "None")
    assert (told["urgent"], told["country"]) == ("False", "land")
    assert told["groups"] == "<QuerySet [<Group: first>]>"


def test_what_does_not_fit_is_a_line_for_each_field(desk: Client) -> None:
    hidden = Country.objects.create(code="de", name="land", hidden=True)
    told = desk.try_call(
        "open_ticket", times=1, title="nothing", country=hidden.pk, groups=[7]
    )
    assert told.is_error
    assert told.text.splitlines() == [
        "These values do not fit:",
        "- country: Select a valid choice. That choice is not one of the available"
        " choices.",
        "- groups: Select a valid choice. 7 is not one of the available choices.",
        "- There is nothing to do.",
    ]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "title"),
        ({"title": None}, "title"),
        ({"title": "a\0"}, "Null characters are not allowed."),
        ({"title": "a", "due": "31.1.2026"}, "due"),
        ({"title": "a", "country": 10**400}, "country"),
        ({"title": "a", "fixed": "y"}, "fixed"),
        ({"title": "a", "photo": "y"}, "photo"),
        ({"title": "a", "locked": "y"}, "- locked: it cannot be set here."),
        ({"title": "a", "groups": [10**30]}, "- A number is too large."),
        ({"title": "x" * 3_000_000}, "title"),
        ({"title": "a", "groups": [*range(2_000)]}, "groups"),
    ],
)
def test_bad_values(desk: Client, arguments: JsonObject, word: str) -> None:
    told = desk.try_call("open_ticket", times=1, **arguments)
    assert told.is_error
    assert word in told.text
    assert len(told.text) < 1_000


OrderForm: Any = forms.modelform_factory(
    Order, fields=["number", "total", "state", "created"]
)


def test_a_model_form_in_an_async_function() -> None:
    registry = Registry()

    @registry.tool(database=True)
    async def add_order(form: OrderForm) -> str:
        return (await Order.objects.acreate(**form.cleaned_data)).number

    client = _client(registry)
    values = {"number": "a1", "total": 2.5, "created": "2026-01-31T08:00:00Z"}
    assert client.call("add_order", **values).data == "a1"
    order = Order.objects.get(number="a1")
    assert (order.state, order.total) == ("open", Decimal("2.50"))
    early = client.try_call("add_order", **{**values, "created": EARLY})
    assert "- created: it must be like" in early.text
    again = client.try_call("add_order", **values)
    assert again.text == (
        "These values do not fit:\n- number: Order with this Number already exists."
    )


class ReplyForm(forms.Form):
    ticket = forms.IntegerField()
    due = forms.DateField(required=False)
    urgent = forms.BooleanField(required=False)


def test_a_form_of_a_prompt() -> None:
    registry = Registry()

    @registry.prompt
    def reply(form: Annotated[ReplyForm, "What to say"]) -> str:
        return " ".join(map(str, form.cleaned_data.values()))

    assert [
        (each.name, each.required)
        for each in registry.prompts["reply"].definition.arguments
    ] == [
        ("ticket", True),
        ("due", False),
        ("urgent", False),
    ]
    client = _client(registry)
    values = {"ticket": "7", "due": "2026-01-31", "urgent": "true"}
    assert client.prompt("reply", **values).text == "7 2026-01-31 True"
    with pytest.raises(Refused, match="- ticket: Enter a whole number"):
        client.prompt("reply", ticket="x")


class WithUser(forms.Form):
    def __init__(self, user: User, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)


class WithPhoto(forms.Form):
    photo = forms.ImageField()


def test_forms_that_no_client_can_fill() -> None:
    registry = Registry()

    def with_user(form: WithUser) -> None: ...
    def with_photo(form: WithPhoto) -> None: ...
    def with_two(form: TicketForm, other: TicketForm) -> None: ...
    def with_both(title: str, form: TicketForm) -> None: ...
    async def on_the_loop(form: TicketForm) -> None: ...

    refused: dict[str, Any] = {
        r"the form WithUser cannot be made of what a client sends \(missing": with_user,
        "the field photo of WithPhoto wants a file, which no client": with_photo,
        "with_two takes two forms: form, other.": with_two,
        "with_both: title is a parameter, and a field of TicketForm": with_both,
        "on_the_loop takes a form, which may read rows": on_the_loop,
    }
    for sentence, function in refused.items():
        with pytest.raises(RegistrationError, match=sentence):
            registry.tool(function)
