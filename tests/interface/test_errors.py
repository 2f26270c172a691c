"""What user code raises, and what its `except` does not swallow."""

from __future__ import annotations

import tomllib

import pytest

from mcp_app.interface.errors import (
    EXTRAS,
    CallCancelled,
    ClientCannot,
    ClientRefused,
    QuestionInTransaction,
    TimedOut,
    ToolError,
    with_remedy,
)
from mcp_app.protocol.content import Text
from tests.apart import ROOT


def test_a_broad_except_does_not_swallow_a_cancellation() -> None:
    assert not issubclass(CallCancelled, Exception)
    for kind in (ToolError, ClientCannot, TimedOut, QuestionInTransaction):
        assert issubclass(kind, Exception)


def test_what_the_client_refuses_is_for_the_model_and_what_it_cannot_is_not() -> None:
    assert issubclass(ClientRefused, ToolError)
    assert not issubclass(ClientCannot, ToolError)


def test_content_stands_in_place_of_a_message_and_cannot_change() -> None:
    blocks = [Text("No.")]
    error = ToolError("no", content=blocks)
    blocks.clear()
    assert error.content == (Text("No."),)
    assert (ToolError("no").content, str(ToolError("no"))) == ((), "no")


def test_what_the_client_lacks() -> None:
    error = ClientCannot("It cannot ask.", {"elicitation": {}})
    assert (str(error), error.required) == ("It cannot ask.", {"elicitation": {}})


# -- extras ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "extra"),
    [
        (ModuleNotFoundError("no", name="rest_framework.authentication"), "drf"),
        (ModuleNotFoundError("no", name="channels_redis"), "redis"),
        (ModuleNotFoundError("no", name="rest_framework_simplejwt"), ""),
        (ImportError("cannot import a name"), ""),
        (ValueError("rest_framework"), ""),
        (None, ""),
    ],
)
def test_what_installs_what_is_missing(error: BaseException | None, extra: str) -> None:
    remedy = f'. Install it: pip install "django-mcp-app[{extra}]"' if extra else ""
    assert with_remedy("It is missing", error) == f"It is missing{remedy}"


def test_each_extra_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])
