"""Extras that are missing are said with the line that installs them."""

from __future__ import annotations

import tomllib

import pytest

from mcp_app.interface.errors import EXTRAS, with_remedy
from tests.apart import ROOT


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ModuleNotFoundError("no", name="rest_framework.authentication"),
            '. Install it: pip install "django-mcp-app[drf]"',
        ),
        (
            ModuleNotFoundError("no", name="channels_redis"),
            '. Install it: pip install "django-mcp-app[redis]"',
        ),
        (ModuleNotFoundError("no", name="rest_framework_simplejwt"), ""),
        (ImportError("cannot import a name"), ""),
        (ValueError("rest_framework"), ""),
        (None, ""),
    ],
)
def test_what_installs_what_is_missing(error: BaseException | None, said: str) -> None:
    assert with_remedy("It is missing", error) == f"It is missing{said}"


def test_each_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
