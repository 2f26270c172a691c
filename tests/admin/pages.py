"""Filling in the pages of the admin like a person with a browser."""

from __future__ import annotations

from html import unescape
from typing import Any, cast

from django.forms import BaseForm
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse


def page(model: str, what: str = "changelist", *args: object) -> str:
    return reverse(f"admin:mcp_app_{model}_{what}", args=args)


def form_of(response: Any) -> BaseForm:
    form: BaseForm = response.context["adminform"].form
    return form


def shown_values(form: BaseForm) -> dict[str, Any]:
    """Return what a browser would send back if nothing were typed."""
    shown = {field.html_name: field.value() for field in form if field.name != "upload"}
    return {
        name: str(value) if not isinstance(value, bool) else "on"
        for name, value in shown.items()
        if value is not None and value is not False
    }


def fill_in(client: Client, url: str, **typed: Any) -> HttpResponse:
    """Open a form, type into it and press *Save*; None clears a field."""
    form = form_of(client.get(url))
    sent = {**shown_values(form), **typed}
    sent = {name: value for name, value in sent.items() if value is not None}
    return cast("HttpResponse", client.post(url, sent))


def errors(response: Any) -> dict[str, str]:
    """Return what stands beside each field, as a person reads it."""
    assert response.status_code == 200
    found = form_of(response).errors
    text = unescape(response.content.decode())
    for sentences in found.values():
        for sentence in sentences:
            assert unescape(str(sentence)) in text
    return {field: " ".join(map(str, said)) for field, said in found.items()}


def saved(response: Any) -> bool:
    """Whether the form was saved; its errors are the message where it was not."""
    if response.status_code == 200:
        raise AssertionError(errors(response))
    return bool(response.status_code == 302)
