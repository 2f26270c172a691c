from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from django.contrib.auth.models import Group, User, UserManager
from django.db.models import QuerySet
from pydantic import BaseModel, ConfigDict

from mcp_app.catalog.django_types import check_parameter, check_result
from mcp_app.interface.errors import RegistrationError


@dataclass
class Member:
    group: Group | None
    leads: list[Member]


class Row(TypedDict):
    member: Member


class Page(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    rows: list[Group]


@dataclass
class Lost:
    group: Unknown  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("annotation", "found"),
    [
        (User, "the Django model User"),
        (User | None, "the Django model User"),
        (dict[str, Annotated[User, "one"]], "the Django model User"),
        (QuerySet[User], "a QuerySet"),
        (UserManager, "a UserManager"),
        (Member, "the Django model Group"),
        (list[Row], "the Django model Group"),
        (Page, "the Django model Group"),
    ],
)
def test_found_wherever_it_is(annotation: Any, found: str) -> None:
    with pytest.raises(RegistrationError) as refusal:
        check_result("shop.users", annotation)
    sentence = f"has {found}, which cannot be written as JSON. Return dicts"
    assert sentence in str(refusal.value)


def test_everything_else() -> None:
    for annotation in (int, list[str], "User", Lost, Any, None):
        check_result("shop.users", annotation)
        check_parameter("shop.users", "user", annotation)


def test_what_a_parameter_takes_instead() -> None:
    for annotation, model in ((User, "User"), (QuerySet[User], "Model")):
        with pytest.raises(RegistrationError, match="parameter user takes") as no:
            check_parameter("shop.show", "user", annotation)
        assert str(no.value).endswith(
            "Take its key, for example user_id: int, and read it with"
            f" {model}.objects.get(pk=user_id)."
        )
