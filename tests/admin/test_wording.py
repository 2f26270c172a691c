from __future__ import annotations

from typing import Any

import pytest
from django.contrib import admin
from django.test import RequestFactory

from mcp_app.admin import wording
from mcp_app.models import Prompt, Resource, ResourceTemplate, Server, Tool

MODELS: dict[type[Any], wording.Words] = {
    Server: wording.SERVER,
    Tool: wording.TOOL,
    Resource: wording.RESOURCE,
    ResourceTemplate: wording.RESOURCE_TEMPLATE,
    Prompt: wording.PROMPT,
}
SEEN_WITHOUT_HELP = {"description", "opened_version", "title", "icons"}


@pytest.mark.django_db
@pytest.mark.parametrize("model", MODELS)
def test_every_field_has_its_words(model: type[Tool], admin_user: object) -> None:
    request = RequestFactory().get("/")
    request.user = admin_user  # type: ignore[assignment]
    form = admin.site.get_model_admin(model).get_form(request)()
    words = {**wording.EVERY, **MODELS[model]}
    assert MODELS[model].keys() <= form.fields.keys()
    assert form.fields.keys() - words.keys() <= SEEN_WITHOUT_HELP
    for name in form.fields.keys() & words.keys():
        assert (form.fields[name].label, form.fields[name].help_text) == words[name]


@pytest.mark.parametrize("words", [wording.EVERY, *MODELS.values()])
def test_no_help_is_taken_for_markup(words: wording.Words) -> None:
    for _, said in words.values():
        assert not {"<", ">"} & set(str(said))


def test_no_word_is_left_over() -> None:
    request = RequestFactory().get("/")
    shown: set[str] = set()
    for model in MODELS:
        for _, options in admin.site.get_model_admin(model).get_fieldsets(request):
            shown.update(map(str, options["fields"]))
    assert wording.EVERY.keys() <= shown
