"""Users with unfold's look, if the site has it: what our pages are compared with."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.utils.module_loading import import_string

from mcp_app.admin.page.unfold import ModelAdmin

if apps.is_installed("unfold"):
    admin.site.unregister(User)

    @admin.register(User)
    class UnfoldUserAdmin(UserAdmin, ModelAdmin):  # type: ignore[type-arg]
        form: Any = import_string("unfold.forms.UserChangeForm")
        add_form: Any = import_string("unfold.forms.UserCreationForm")
        change_password_form: Any = import_string(
            "unfold.forms.AdminPasswordChangeForm"
        )
