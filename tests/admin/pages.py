"""Filling in the pages of the admin like a person with a browser without scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from html import unescape
from html.parser import HTMLParser
from typing import Any, TypeAlias, TypeVar, cast

from django.contrib.auth.models import Permission, User
from django.db.models import Model
from django.forms import BaseForm
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from mcp_app.admin.editors.json_editor import SheetWidget

Row = TypeVar("Row", bound=Model)
Queries: TypeAlias = Callable[[int], AbstractContextManager[Any]]
Staff: TypeAlias = Callable[..., Client]
Attributes = list[tuple[str, str | None]]


def page(model: str, what: str = "changelist", *args: object) -> str:
    return reverse(f"admin:mcp_app_{model}_{what}", args=args)


def form_page(model: str, kind: str = "text") -> str:
    """Return the page on which a definition of a kind is added."""
    return f"{page(model, 'add')}?kind={kind}"


def form_of(response: Any) -> BaseForm:
    form: BaseForm = response.context["adminform"].form
    return form


class Fields(HTMLParser):
    """The fields of the form of a page, and what they would send."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, Any] = {}
        self._area: str | None = None
        self._select: str | None = None
        self._takes_several = False
        self._in_template = 0
        self._is_logout = False

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        about = dict(attrs)
        if tag == "template":
            self._in_template += 1
        name = about.get("name")
        if self._in_template or ("disabled" in about):
            return
        if tag == "input" and name:
            self._input(name, about)
        elif tag == "textarea" and name:
            self._area = name
            self.values[name] = ""
        elif tag == "select" and name:
            self._select, self._takes_several = name, "multiple" in about
        elif tag == "option" and self._select:
            self._option(self._select, about)

    def _option(self, name: str, about: dict[str, str | None]) -> None:
        value = about.get("value") or ""
        if self._takes_several:
            if "selected" in about:
                self.values.setdefault(name, []).append(value)
        elif "selected" in about or name not in self.values:
            self.values[name] = value

    def _input(self, name: str, about: dict[str, str | None]) -> None:
        kind = about.get("type") or "text"
        if kind in ("submit", "file", "search"):
            return
        if kind in ("checkbox", "radio") and "checked" not in about:
            return
        value = about.get("value")
        if kind == "checkbox" and value:
            # Several boxes of one name send a list.
            self.values.setdefault(name, []).append(value)
            return
        default = "on" if kind in ("checkbox", "radio") else ""
        sent = default if value is None else value
        before = self.values.get(name)
        if kind == "text" and before is not None:
            # Several inputs of one name do, too.
            self.values[name] = [
                *(before if isinstance(before, list) else [before]),
                sent,
            ]
            return
        self.values[name] = sent

    def handle_endtag(self, tag: str) -> None:
        if tag == "template":
            self._in_template -= 1
        elif tag == "textarea" and self._area:
            # A browser takes the first line break away, and sends CR LF.
            text = self.values[self._area].removeprefix("\n")
            self.values[self._area] = text.replace("\n", "\r\n")
            self._area = None
        elif tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.values[self._area] += data


def shown_values(response: Any) -> dict[str, Any]:
    """Return what a browser would send back if nothing were typed."""
    fields = Fields()
    fields.feed(response.content.decode())
    return fields.values


def fill_in(client: Client, url: str, **typed: Any) -> HttpResponse:
    """Open a form, type into it and press *Save*; None clears a field."""
    return fill_in_again(client, url, client.get(url), **typed)


def fill_in_again(client: Client, url: str, opened: Any, **typed: Any) -> HttpResponse:
    """Type into a form that was opened before, and press *Save*."""
    sent = {**shown_values(opened), **typed}
    sent = {name: value for name, value in sent.items() if value is not None}
    return cast("HttpResponse", client.post(url, sent))


def errors(response: Any) -> dict[str, str]:
    """Return what stands beside each field, as a person reads it.

    Errors of rows stand under the field with the rows.
    """
    assert response.status_code == 200
    form = form_of(response)
    text = unescape(response.content.decode())
    for sentences in form.errors.values():
        for sentence in sentences:
            assert unescape(str(sentence)) in text
    found = {field: " ".join(map(str, said)) for field, said in form.errors.items()}
    for field in found.keys() & form.fields.keys():
        bound = form[field]
        if isinstance(bound.field.widget, SheetWidget):
            for id_, _label, sentence in bound.field.widget.error_places(bound.data):
                assert f'id="{id_}"' in text
                assert f'id="{id_}_error"' in text
                found[field] += f" {sentence}"
    return found


def saved(response: Any) -> bool:
    """Whether the form was saved; its errors are the message where it was not."""
    if response.status_code == 200:
        raise AssertionError(errors(response))
    return bool(response.status_code == 302)


def page_of(row: Model, what: str = "change", *args: object) -> str:
    """Return the address of a page of a row."""
    return page(str(row._meta.model_name), what, row.pk, *args)


def text_of(client: Client, url: str | Model, asked: Any = None) -> str:
    """Return the HTML of a page, or of the form of a row."""
    response = client.get(page_of(url) if isinstance(url, Model) else url, asked)
    assert response.status_code == 200
    return response.content.decode()


def words_of(client: Client, url: str | Model, asked: Any = None) -> str:
    """Return the HTML of a page in one line, with its characters as they are read."""
    return " ".join(unescape(text_of(client, url, asked)).split())


def add(client: Client, model: type[Row], kind: str = "text", **typed: Any) -> Row:
    """Add a definition in the form of its kind, and return its row."""
    assert saved(fill_in(client, form_page(str(model._meta.model_name), kind), **typed))
    return model._default_manager.latest("pk")


def save(client: Client, row: Model, **typed: Any) -> None:
    """Type into the form of a row, save it and read the row again."""
    assert saved(fill_in(client, page_of(row), **typed))
    row.refresh_from_db()


def words_in(response: Any) -> str:
    """Return what a person reads on a page, without its markup."""
    bare = re.sub(r"<[^>]+>", " ", response.content.decode())
    return " ".join(unescape(bare).split())


def text_after(client: Client, url: str, sent: Any = None) -> str:
    """Send a form, and return the HTML of the page to which that leads."""
    return client.post(url, sent, follow=True).content.decode()


def grant(right: str, to: str = "kim") -> None:
    """Give somebody a permission."""
    permission = Permission.objects.get(codename=right)
    User.objects.get(username=to).user_permissions.add(permission)


def home(client: Client, query: str = "") -> Any:
    """Return the response of the home page."""
    response = client.get(reverse("admin:app_list", args=["mcp_app"]) + query)
    assert response.status_code == 200
    return response
