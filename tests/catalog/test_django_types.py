from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from django.contrib.auth.models import Group, User, UserManager
from django.db.models import QuerySet
from pydantic import BaseModel, ConfigDict

from mcp_app.catalog.django_types import check_parameter, check_result
from mcp_app.catalog.errors import RegistrationError


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
    assert f"has {found}, which cannot be written as JSON. Return dicts" in str(
        refusal.value
    )


@pytest.mark.parametrize("annotation", [int, list[str], "User", Lost, Any, None])
def test_everything_else(annotation: Any) -> None:
    check_result("shop.users", annotation)
    check_parameter("shop.users", "user", annotation)


@pytest.mark.parametrize(
    ("annotation", "read"),
    [
        (User, "User.objects.get(pk=user_id)"),
        (QuerySet[User], "Model.objects.get(pk=user_id)"),
    ],
)
def test_what_a_parameter_takes_instead(annotation: Any, read: str) -> None:
    with pytest.raises(RegistrationError, match="parameter user takes") as no:
        check_parameter("shop.show", "user", annotation)
    assert str(no.value).endswith(
        f"Take its key, for example user_id: int, and read it with {read}."
    )
