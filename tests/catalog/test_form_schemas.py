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
from tests.toolsets.people import client_of, person

pytestmark = pytest.mark.django_db

ZONE: Final = dt.timezone(dt.timedelta(hours=5))
KEY: Final = "5f6ea5ab-4ad2-4b5b-9f0f-3f3c6c1f5c1a"
URL: Final = "https://a.de"
MAIL: Final = "a@b.de"
NUMBERS: Final = [(1, "One")]
STATES: Final = [("", "---"), ("a", "Anew"), ("Old", [("b", "B")])]
FOLDER: Final = str(Path(__file__).parent)
FILE: Final = f"{FOLDER}/__init__.py"
MOMENT: Final = dt.datetime(2026, 1, 31, 8, tzinfo=dt.UTC)
EARLY: Final = "0001-01-01T00:00:00+23:59"
HERE: Final = dt.datetime(2026, 1, 31, 8, tzinfo=ZONE)
LAST: Final = dt.date(2026, 1, 31)
SPAN: Final = dt.timedelta(days=1, hours=2)
NO: Final[Any] = {"required": False}


class Span(forms.MultiValueField):
    """From one number to another."""

    def __init__(self, **options: Any) -> None:
        fields = forms.IntegerField(), forms.IntegerField()
        widget = forms.MultiWidget([forms.NumberInput, forms.NumberInput])
        super().__init__(fields, widget=widget, **options)

    def compress(self, values: Any) -> Any:
        return tuple(values)


def text(**members: object) -> JsonObject:
    return {"type": "string", **members}


WHOLE: Final[JsonObject] = {"type": "integer"}
NUMBER: Final[JsonObject] = {"type": "number"}
YES: Final[JsonObject] = {"type": "boolean"}
YES_OR_NULL: Final[JsonObject] = {"anyOf": [YES, {"type": "null"}]}
DAY: Final = text(format="date")
AB: Final = text(enum=["a", "b"])
A_OR_NULL: Final = {"anyOf": [AB, {"type": "null"}]}
ONE: Final[JsonObject] = {**WHOLE, "minimum": 1, "maximum": 1}
AT_LEAST_0: Final[JsonObject] = {**WHOLE, "minimum": 0}
SOME: Final = {"type": "array", "items": AB, "minItems": 1}
LIST_OF_ONES: Final = {
    "type": "array",
    "items": {**ONE, "description": "One of: 1."},
}
ONES: Final = {"anyOf": [LIST_OF_ONES, {"type": "null"}]}
PAIR: Final = {"items": WHOLE, "minItems": 2, "maxItems": 2}
BOXES: Final = forms.CheckboxSelectMultiple
RADIO: Final = forms.RadioSelect(choices=[(1, "Yes")])
A_TEXT: Final = forms.CharField(max_length=3)
TYPED: Final[Any] = {"choices": NUMBERS, "coerce": int}

FIELDS: Final[list[tuple[Any, JsonObject, object, object]]] = [
    (forms.CharField(max_length=9), text(maxLength=9), " a ", "a"),
    (forms.CharField(widget=forms.HiddenInput), text(), "a", "a"),
    (forms.SlugField(), text(), "a-b", "a-b"),
    (forms.RegexField("^a+$"), text(), "aa", "aa"),
    (forms.ComboField(fields=[A_TEXT]), text(), "abc", "abc"),
    (forms.EmailField(), text(format="email", maxLength=320), MAIL, MAIL),
    (forms.URLField(assume_scheme="https"), text(format="uri"), URL, URL),
    (forms.UUIDField(), text(format="uuid"), KEY, UUID(KEY)),
    (forms.GenericIPAddressField(), text(maxLength=39), "::1", "::1"),
    (forms.JSONField(), {}, {"a": [1]}, {"a": [1]}),
    (forms.JSONField(), {}, "text", "text"),
    (forms.IntegerField(min_value=0, localize=True), AT_LEAST_0, 1234, 1234),
    (forms.FloatField(localize=True), NUMBER, 1.5, 1.5),
    (forms.DecimalField(localize=True), NUMBER, 1.25, Decimal("1.25")),
    (forms.BooleanField(**NO), YES_OR_NULL, False, False),
    (forms.BooleanField(initial=False, widget=RADIO), YES, True, True),
    (forms.NullBooleanField(**NO), YES_OR_NULL, None, None),
    (forms.NullBooleanField(), YES, False, False),
    (forms.DateField(input_formats=["%d.%m.%Y"]), DAY, "2026-01-31", LAST),
    (forms.DateField(widget=forms.SelectDateWidget), DAY, "2026-01-31", LAST),
    (forms.TimeField(), text(), "08:30", dt.time(8, 30)),
    (forms.DateTimeField(), text(), "2026-01-31T08:00:00Z", MOMENT),
    (forms.DateTimeField(), text(), "2026-01-31T08:00", HERE),
    (forms.SplitDateTimeField(), text(), "2026-01-31T08:00:00Z", MOMENT),
    (forms.DurationField(), text(), "P1DT2H", SPAN),
    (forms.ChoiceField(choices=STATES), AB, "b", "b"),
    (forms.ChoiceField(choices=STATES, **NO), A_OR_NULL, None, ""),
    (forms.TypedChoiceField(**TYPED), ONE, 1, 1),
    (models.IntegerField(choices=NUMBERS).formfield(), ONE, 1, 1),
    (forms.ChoiceField(choices=lambda: STATES), text(), "a", "a"),
    (forms.MultipleChoiceField(choices=STATES, widget=BOXES), SOME, ["b"], ["b"]),
    (forms.TypedMultipleChoiceField(**TYPED, **NO), ONES, [1], [1]),
    (forms.FilePathField(FOLDER, match="^__i"), text(enum=[FILE]), FILE, FILE),
    (Span(), {"type": "array", **PAIR}, [3, 4], (3, 4)),
]


Everything: Any = type(
    "Everything",
    (forms.Form,),
    {f"f{at}": field for at, (field, *_) in enumerate(FIELDS)},
)


@override_settings(LANGUAGE_CODE="de", TIME_ZONE="Asia/Karachi")
def test_each_class_of_field() -> None:
    """What a client sends is what the function reads, whatever the site's language."""
    registry, received = Registry(), list[object]()

    @registry.tool
    def fill_in(form: Everything) -> None:
        received.extend(form.cleaned_data.values())

    client = client_of(person("ada"), registry)
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
    title = forms.CharField(max_length=20, help_text="<b>Short</b>, please", initial="")
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

    return client_of(person("ada"), registry)


TICKET: Final[JsonObject] = {
    "times": (WHOLE, "How often."),
    "title": (text(maxLength=20), "Short, please."),
    "state": ({**AB, "default": "a"}, "How old it is. a: Anew."),
    "due": ({"anyOf": [DAY, {"type": "null"}]}, "Due."),
    "urgent": ({**YES_OR_NULL, "default": True}, "Urgent."),
    "country": ({"anyOf": [WHOLE, {"type": "null"}]}, "Country."),
    "groups": (
        {"anyOf": [{"type": "array", "items": WHOLE}, {"type": "null"}]},
        "Groups.",
    ),
    "locked": ({"anyOf": [text(), {"type": "null"}]}, "Locked."),
}


def test_a_form_beside_other_parameters(desk: Client) -> None:
    [tool] = desk.tools()
    assert tool["inputSchema"] == {
        "type": "object",
        "additionalProperties": False,
        "required": ["times", "title"],
        "properties": {
            name: {**schema, "description": description}
            for name, (schema, description) in TICKET.items()
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
    others = {"due": None, "urgent": False, "country": country.pk, "groups": [group.pk]}
    filled = desk.call("open_ticket", times="2", title="mend", state="b", **others).data
    assert (
        filled.items()
        >= {
            **{"state": "b", "due": "None", "urgent": "False", "country": "land"},
            "groups": "<QuerySet [<Group: first>]>",
        }.items()
    )


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

    client = client_of(person("ada"), registry)
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

    arguments = registry.prompts["reply"].definition.arguments
    assert [each.name for each in arguments if each.required] == ["ticket"]
    client = client_of(person("ada"), registry)
    values = {"ticket": "7", "due": "2026-01-31", "urgent": "true"}
    assert client.prompt("reply", **values).text == "7 2026-01-31 True"
    with pytest.raises(Refused, match="- ticket: Enter a whole number"):
        client.prompt("reply", ticket="x")


class WithUser(forms.Form):
    def __init__(self, user: User, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)


class WithRequest(forms.Form):
    def __init__(self, *positional: Any, request: object, **named: Any) -> None:
        super().__init__(*positional, **named)


class WithPhoto(forms.Form):
    photo = forms.ImageField()


def test_forms_that_no_client_can_fill() -> None:
    registry = Registry()

    def with_user(form: WithUser) -> None: ...
    def with_request(form: WithRequest) -> None: ...
    def with_photo(form: WithPhoto) -> None: ...
    def with_two(form: TicketForm, other: TicketForm) -> None: ...
    def with_both(title: str, form: TicketForm) -> None: ...
    async def on_the_loop(form: TicketForm) -> None: ...

    refused: dict[str, Any] = {
        r"the form WithUser cannot be made of what a client sends \(Type": with_user,
        "Take a subclass that passes request=None": with_request,
        "the field photo of WithPhoto wants a file, which no client": with_photo,
        "with_two takes two forms: form, other.": with_two,
        "with_both: title is a parameter, and a field of TicketForm": with_both,
        "on_the_loop takes a form, which may read rows": on_the_loop,
    }
    for sentence, function in refused.items():
        with pytest.raises(RegistrationError, match=sentence):
            registry.tool(function)
