"""Where a search, a filter or an order of the admin meets a secret."""

from __future__ import annotations

from django.db import models
from django.test.utils import isolate_apps

from mcp_app.catalog.secret_fields import is_secret_path, searches_secret


@isolate_apps("tests.drill")
def test_paths_that_come_by_a_secret() -> None:
    class AccessToken(models.Model):  # noqa: DJ008
        label = models.CharField()
        code = models.CharField()

        class Meta:
            app_label = "drill"

    class Widget(models.Model):  # noqa: DJ008
        name = models.CharField()
        code = models.CharField()
        data = models.JSONField()
        grant = models.ForeignKey(AccessToken, models.CASCADE)

        class Meta:
            app_label = "drill"

    for path, is_secret in {
        "name": False,
        "name__icontains": False,
        "code": False,
        "grant__label": False,
        "grant__code": True,
        "grant__code__in": True,
        "data": True,
        "data__host__icontains": True,
        "lines__api_key__startswith": True,
    }.items():
        assert is_secret_path(path, Widget) == is_secret, path
    assert searches_secret(["name", "^grant__code"], Widget)
    assert not searches_secret(["=name", "@code"], Widget)
