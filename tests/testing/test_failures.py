"""What the test client refuses, and the sentences that developers read then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import DjangoDbBlocker

from mcp_app import Declined
from mcp_app.models import Server
from mcp_app.test import Client, Refused, ToolFailed, Unanswered
from tests import behaviours

pytestmark = pytest.mark.django_db


class Behaved(Client):
    _registry = behaviours.registry


@pytest.fixture(autouse=True)
def _open() -> None:
    Server.objects.filter(slug="default").update(access="public")
    Server.objects.create(slug="apart", access="public")


def old(**options: Any) -> Client:
    """Return a client of a revision with sessions."""
    return Behaved(revision="2025-11-25", **options)


@pytest.fixture
def eve() -> User:
    return User.objects.create_user("eve")


def unsaved() -> Client:
    return Client(User(username="ada"))


def deleted() -> Client:
    user = User.objects.create_user("zoe")
    client = Client(user)
    User.objects.all().delete()
    return client


def inactive() -> Client:
    return Client(User.objects.create_user("off", is_active=False))


@pytest.mark.parametrize(
    ("use", "error", "sentence"),
    [
        (lambda: Client(revision="2026"), ValueError, "'2026' is no revision"),
        (lambda: unsaved().tools(), ValueError, "ada has no row: save it first"),
        (lambda: deleted().tools(), Refused, "'zoe' is no longer active"),
        (lambda: inactive().tools(), Refused, "'off' is no longer active"),
        (lambda: Client(server="none").tools(), Refused, "no MCP server 'none' here"),
        (lambda: Client(server="apart").tools(), Refused, "no MCP server 'apart'"),
        (lambda: Client().call("x", y=object()), TypeError, "cannot be sent as JSON"),
        (lambda: Client().call("no_tool"), Refused, r"no_tool was refused \(-32602\)"),
        (lambda: Behaved().call("fails", kind="tool error"), ToolFailed,
         "fails failed: Read this."),
        (lambda: Behaved().call("fails", kind="value"), ValueError, "secret of"),
        (lambda: Behaved().call("typed", count="many"), ToolFailed, r"\$\.count"),
        (lambda: Behaved().prompt("prompt_fails"), ValueError, "secret of"),
        (lambda: Behaved().call("orders"), Unanswered,
         r"answers={'What\?': {'item': 'text', 'count': 1}}"),
        (lambda: Behaved().call("samples_sync"), Unanswered,
         r"answers={'Say something\.': 'What the model says\.'}"),
        (lambda: Behaved().call("roots"), Unanswered,
         r"answers={'roots/list': \['file:///folder'\]}"),
        (lambda: Behaved(answers={"What?": 7}).call("orders"), TypeError,
         "7 does not answer elicitation/create"),
        (lambda: Behaved(answers={"What?": lambda _: 1 / 0}).call("orders"),
         ZeroDivisionError, "division"),
        (lambda: Behaved(answers={"What?": {"item": 7}}).call("orders"), ValueError,
         r"answer to 'What\?' does not fit the form: .*\$\.item"),
        (lambda: Behaved().call("fails", kind="exit"), RuntimeError, "SystemExit"),
        (lambda: Behaved().call("fails_sync", kind="exit"), RuntimeError, "SystemExit"),
        (lambda: Behaved().call("large", size="9" * 5_000_000), Refused,
         "The body is larger than"),
        (lambda: old(answers={"What?": lambda _: pytest.fail("no")}).call("orders"),
         pytest.fail.Exception, "no"),
        (lambda: old(answers={"What?": {"item": object()}}).call("orders"), TypeError,
         "cannot be sent as JSON"),
        (lambda: old(answers={"What?": {"item": "\ud800"}}).call("orders"), TypeError,
         "cannot be sent as JSON"),
        (lambda: Behaved(answers={"roots/list": [5]}).call("roots"), Refused,
         "The answers do not fit"),
        (lambda: Client("eve"), TypeError, "'eve' is no user"),  # type: ignore[arg-type]
        (lambda: Behaved(answers={"sampling/createMessage": Declined()}).call(
            "samples_sync"), Refused, "rejected"),
        (lambda: Behaved().assertHidden("typed"), AssertionError, "a list of this"),
        (lambda: Behaved().assertHidden("memo://number/7"), AssertionError,
         "reads 'an answer: number 7'"),
    ],
)  # fmt: skip
def test_sentences(
    use: Callable[[], object], error: type[Exception], sentence: str
) -> None:
    behaviours.new_stage()
    with pytest.raises(error, match=sentence):
        use()


def test_hidden_is_as_unknown(eve: User) -> None:
    client = Behaved(eve)
    for each in ("secret", "secret_prompt", "vault://list", "vault://item/gold"):
        client.assertHidden(each)


async def test_in_a_running_loop() -> None:
    with pytest.raises(RuntimeError, match="Await the method"):
        Client().tools()


def test_without_the_mark(django_db_blocker: DjangoDbBlocker) -> None:
    with (
        django_db_blocker.block(),
        pytest.raises(RuntimeError, match='use the "django_db" mark'),
    ):
        Client().tools()


def test_no_client_in_an_answer() -> None:
    client = Behaved(answers={"What?": lambda _: Client().tools()})
    with pytest.raises(RuntimeError, match="cannot use a test client"):
        client.call("orders")
