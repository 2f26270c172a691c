from __future__ import annotations

import re
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from mcp_app.catalog.registry import mcp
from mcp_app.catalog.stored import MODELS, StoredDefinition, load, served_versions
from mcp_app.kinds import findings
from mcp_app.models import Prompt, Server

pytestmark = pytest.mark.django_db


def demo() -> str:
    said = StringIO()
    call_command("mcp_demo", stdout=said)
    return said.getvalue()


def test_the_first_run_makes_content_that_can_be_served() -> None:
    said = demo()
    assert "The server “default” is public." in said
    keys = [key for kind in MODELS for key in served_versions(kind)]
    stored = [each for each in load(mcp, keys) if isinstance(each, StoredDefinition)]
    assert [each.definition.name for each in stored] == [
        "returns",
        "greeting",
        "answer_a_complaint",
    ]
    for each in stored:
        assert findings(each.definition, each.kind, each.config) == []
    assert Server.objects.get().access_names == ("public",)


def test_the_first_staff_user_gets_a_password_of_its_own() -> None:
    found = re.search(r"Staff user: admin, password: (\S+) ", demo())
    assert found is not None
    user = User.objects.get()
    assert user.is_superuser
    assert user.check_password(found[1])


def test_a_second_run_changes_and_says_nothing() -> None:
    demo()
    Server.objects.update(access="")
    Prompt.objects.update(title="Mine")
    assert demo() == ""
    assert Server.objects.get().access == ""
    assert Prompt.objects.get().title == "Mine"


def test_a_site_with_content_and_staff_stays_as_it_is() -> None:
    User.objects.create_user("ana", is_staff=True)
    Prompt.objects.create(name="mine")
    assert demo() == ""
    assert Server.objects.get().access == "token"


@pytest.mark.parametrize("access", ["", "token"])
def test_a_server_that_someone_set_up_keeps_its_rules(access: str) -> None:
    Server.objects.update(access=access, title="Shop")
    assert "public" not in demo()
    server = Server.objects.get()
    assert (server.access, server.title) == (access, "Shop")
