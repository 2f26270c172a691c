from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.template import Context, Template
from django.test.utils import CaptureQueriesContext

from mcp_app.interface.principal import Principal
from mcp_app.models import Change, Session, Subscription, Worker
from mcp_app.models.fields import digest
from mcp_app.models.sessions import SESSION

pytestmark = pytest.mark.django_db


def session(session_id: str = "s", **columns: Any) -> Session:
    defaults = {
        "digest": digest(session_id.encode()),
        "principal_key": Principal(kind="user", user_id="7", client="token").key,
        "server": "default",
        "revision": "2025-11-25",
        "created_ms": 1000,
        "seen_ms": 1000,
    }
    return Session.objects.create(**{**defaults, **columns})


def test_a_session_is_found_by_its_id_which_is_not_stored() -> None:
    made = session("secret")
    assert Session.objects.named("secret").get() == made
    assert not Session.objects.named("Secret").exists()
    stored = Session.objects.values().get()
    assert "secret" not in str(stored)


def test_the_client_and_the_user_of_a_session() -> None:
    names = {
        "": "",
        '{"name": "Claude", "version": "2.1"}': "Claude 2.1",
        '{"name": 7}': "",
    }
    for info, name in names.items():
        assert Session(client_info=info).client_name == name
    user = Principal(kind="user", user_id="7", client="token")
    users = {user.key: "7", Principal.ANONYMOUS.key: "", "odd": ""}
    for key, user_id in users.items():
        assert Session(principal_key=key).user_id == user_id


def test_a_resource_is_watched_once_and_only_while_the_session_lives() -> None:
    made = session()
    Subscription.objects.create(session=made, uri="x:a")
    Subscription.objects.create(session=made, uri="x:A")
    with pytest.raises(IntegrityError), transaction.atomic():
        Subscription.objects.create(session=made, uri="x:a")
    made.delete()
    assert not Subscription.objects.exists()


def test_no_template_deletes_a_session() -> None:
    made = session()
    assert Template("{{ made.delete }}").render(Context({"made": made})) == ""
    assert Session.objects.exists()


def worker(worker_id: str = "w") -> Worker:
    return Worker.objects.create(id=worker_id, host="h", pid=1, started_ms=1, seen_ms=1)


def test_a_resource_is_watched_by_a_session_or_by_a_process() -> None:
    Subscription.objects.create(session=session(), uri="x:a")
    Subscription.objects.create(worker=worker(), uri="x:a")
    with pytest.raises(IntegrityError), transaction.atomic():
        Subscription.objects.create(session=session("t"), worker=worker("v"), uri="x:b")
    with pytest.raises(IntegrityError), transaction.atomic():
        Subscription.objects.create(worker_id="w", uri="x:a")
    Worker.objects.all().delete()
    assert Subscription.objects.get().worker is None


def test_the_level_of_a_session_is_told_to_all_unless_it_is_gone() -> None:
    made = session()
    Change.objects.all().delete()
    assert Session.objects.set_level(made.pk, 4)
    made.refresh_from_db()
    assert made.log_level == 4
    assert list(Change.objects.values_list("kind", "ref")) == [(SESSION, str(made.pk))]
    assert not Session.objects.set_level(made.pk + 1, 4)
    assert Change.objects.count() == 1


def test_many_sessions_are_deleted_with_few_statements() -> None:
    """One that stays until strangers' 50 oldest are gone must not wait for long."""
    made = [session(f"s{number}") for number in range(50)]
    stays = session("stays")
    for each in (*made[:3], stays):
        Subscription.objects.create(session=each, uri="shop://orders/1")
    Change.objects.all().delete()
    with CaptureQueriesContext(connection) as queries:
        rows = Session.objects.filter(pk__in=[each.pk for each in made])
        assert rows.delete() == (50, {"mcp_app.Session": 50})
    # MariaDB deletes by key, but sends these statements together.
    assert len(queries) <= 20
    assert list(Session.objects.all()) == [stays]
    assert [each.session_id for each in Subscription.objects.all()] == [stays.pk]
    changes = Change.objects.filter(kind=SESSION).values_list("ref", flat=True)
    assert sorted(changes) == sorted(str(each.pk) for each in made)
