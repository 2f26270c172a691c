from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import RequestFactory

from mcp_app.admin.page import wording
from mcp_app.kinds.registry import OURS
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool

MODELS: dict[type[Any], wording.Words] = {
    Server: wording.SERVER,
    Tool: wording.TOOL,
    Resource: wording.RESOURCE,
    ResourceTemplate: wording.RESOURCE_TEMPLATE,
    Prompt: wording.PROMPT,
}
PAGES = [
    *((model, kind) for model in MODELS if model is not Server for kind in OURS),
    (Server, ""),
]
SEEN_WITHOUT_HELP = {"icons", "kind", "opened_fields", "opened_version", "title"}


@pytest.mark.django_db
@pytest.mark.parametrize(("model", "kind"), PAGES)
def test_every_field_has_its_words(
    model: type[Tool], kind: str, admin_user: object
) -> None:
    request = RequestFactory().get("/", {"kind": kind})
    request.user = admin_user  # type: ignore[assignment]
    form: Any = admin.site.get_model_admin(model).get_form(request)()
    words = {**wording.EVERY, **MODELS[model], **form.WORDS}
    assert form.fields.keys() - words.keys() <= SEEN_WITHOUT_HELP
    for name in form.fields.keys() & words.keys():
        assert (form.fields[name].label, form.fields[name].help_text) == words[name]


@pytest.mark.parametrize("words", [wording.EVERY, *MODELS.values()])
def test_no_help_is_taken_for_markup(words: wording.Words) -> None:
    for _, said in words.values():
        assert not {"<", ">"} & set(str(said))


@pytest.mark.parametrize("model", MODELS)
def test_no_word_is_left_over(model: type[Any]) -> None:
    shown: set[str] = set()
    for kind in OURS:
        request = RequestFactory().get("/", {"kind": kind})
        request.user = User(is_superuser=True)
        for _, options in admin.site.get_model_admin(model).get_fieldsets(request):
            shown.update(map(str, options["fields"]))
    assert MODELS[model].keys() <= shown
    if model is Resource:
        assert wording.EVERY.keys() <= shown
