"""Which permissions the tables have."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Permission

pytestmark = pytest.mark.django_db


def test_only_tables_with_a_page_have_those_of_django() -> None:
    ours = apps.get_app_config("mcp_app").get_models()
    with_page = {each for each in ours if each in admin.site._registry}
    usual = Permission.objects.filter(
        content_type__app_label="mcp_app", codename__regex="^(add|change|delete)_"
    )
    found = {each.content_type.model_class() for each in usual}
    assert found
    assert found <= with_page
