from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import product
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from mcp_app.models import (
    DefinitionVersion,
    Prompt,
    PublishedRow,
    Resource,
    ResourceTemplate,
    Server,
    State,
    Stop,
    Tool,
)
from mcp_app.models.stops import is_stopped, stop_matcher
from mcp_app.models.versions import PUBLISH_BATCH_SIZE
from tests.published import published, stopped

pytestmark = pytest.mark.django_db


def edited(row: Tool, title: str) -> Tool:
    row.title = title
    row.save()
    return row


def numbers(row: PublishedRow) -> list[int]:
    own = DefinitionVersion.objects.of(row)
    return list(own.values_list("number", flat=True))


# -- publishing ---------------------------------------------------------------------


def test_a_version_is_what_the_working_copy_was() -> None:
    author = User.objects.create_user("ana")
    schema = '{"type": "object", "properties": {"z": {}, "a": {}}}'
    row = Tool.objects.create(name="a", title="T", input_schema=schema, read_only=False)
    [version] = Tool.objects.publish([row], author=author, note="First.")
    assert [version] == list(DefinitionVersion.objects.of(row))
    assert version.content == (
        '{"name":"a","title":"T","input_schema":{"type":"object","properties":'
        '{"z":{},"a":{}}},"read_only":false}'
    )
    assert (version.number, version.note, version.author) == (1, "First.", author)
    assert version.hash == row.content_hash
    author.delete()
    version = DefinitionVersion.objects.of(row).get()
    assert (version.author, version.author_name) == (None, "ana")


def test_numbers_only_go_up() -> None:
    row = published(Tool(name="a"))
    published(edited(row, "2"))
    Tool.objects.unpublish([row])
    published(row)
    published(edited(row, "4"))
    assert numbers(row) == [4, 3, 2, 1]


def test_what_clients_see_already_makes_no_version() -> None:
    # A value is hashed as it comes back.
    row = published(Tool(name="a", config='{"content":[]}', timeout=5))
    assert Tool.objects.get().state == row.state == State.PUBLISHED
    # White space in JSON is no difference.
    row.config = '{ "content" : [ ] }'
    row.save()
    assert row.state == State.PUBLISHED
    first = row.published
    [again] = Tool.objects.publish([row])
    assert again == first
    assert numbers(row) == [1]


def test_a_version_never_changes() -> None:
    version = published(Tool(name="a")).published
    assert version is not None
    version.note = "Other."
    with pytest.raises(TypeError, match="can never be changed"):
        version.save()
    with pytest.raises(TypeError, match="can never be changed"):
        DefinitionVersion.objects.update(note="Other.")


def test_the_versions_go_with_their_row() -> None:
    row, other = published(Tool(name="a")), published(Prompt(name="a"))
    published(edited(row, "2"))
    row.delete()
    left = DefinitionVersion.objects.exclude(kind="server")
    assert list(left) == [other.published]


def test_a_row_that_is_gone_publishes_nothing() -> None:
    row, other = published(Tool(name="a")), Tool.objects.create(name="b")
    Tool.objects.filter(pk=row.pk).delete()
    with pytest.raises(Tool.DoesNotExist, match="does not exist any more"):
        Tool.objects.publish([other, row])
    assert not DefinitionVersion.objects.filter(kind="tool").exists()


@pytest.mark.parametrize(
    ("model", "first", "second"),
    [
        (Tool, {"name": "a"}, {"name": "b"}),
        (Prompt, {"name": "a"}, {"name": "b"}),
        (Resource, {"name": "x", "uri": "x:a"}, {"name": "x", "uri": "x:b"}),
        (
            ResourceTemplate,
            *({"name": "x", "uri_template": each} for each in ("x:{a}", "x:{b}")),
        ),
    ],
)
def test_two_rows_are_never_served_under_one_name(
    model: type[Any], first: dict[str, str], second: dict[str, str]
) -> None:
    """A working copy may have the name that another row had when it was published."""
    one = published(model(**first))
    for name, value in second.items():
        setattr(one, name, value)
    one.save()
    other = model.objects.create(**first)
    with pytest.raises(IntegrityError), transaction.atomic():
        model.objects.publish([other])
    model.objects.publish([one])
    model.objects.publish([other])
    model.objects.unpublish([one])
    assert model.objects.filter(published__isnull=False).get() == other


def test_many_rows_cost_few_statements(
    django_assert_max_num_queries: Callable[[int], AbstractContextManager[object]],
) -> None:
    rows = Tool.objects.bulk_create(
        [Tool(name=f"t{n}") for n in range(PUBLISH_BATCH_SIZE + 1)]
    )
    rows = list(Tool.objects.all())
    # For each 500: to lock, to number, to insert, to read back; for each row two.
    with django_assert_max_num_queries(2 * len(rows) + 20):
        versions = Tool.objects.publish(rows)
    assert [version.ref for version in versions] == [str(row.pk) for row in rows]
    assert Tool.objects.filter(published__number=1).count() == PUBLISH_BATCH_SIZE + 1


# -- contents -----------------------------------------------------------------------


def test_a_row_can_be_put_back_to_a_version() -> None:
    row = published(Tool(name="a", title="Then", output_schema='{"type":"object"}'))
    version = row.published
    assert version is not None
    row.title, row.output_schema, row.position = "Now", "", 7
    row.save()
    row.put_content(version.read())
    row.save()
    assert (row.title, row.position) == ("Then", 0)
    assert row.output_schema == '{"type":"object"}'
    assert row.state == State.PUBLISHED


def test_an_overlay_has_only_what_may_be_changed() -> None:
    row = Tool.objects.create(name="a", source="code", title="T", config='{"x": 1}')
    assert row.working_content() == {"title": "T"}
    assert published(row).published_identity is None


def test_updates_of_many_rows_keep_the_hash_right() -> None:
    row = published(Tool(name="a"))
    Tool.objects.update(title="New")
    assert Tool.objects.get().state == State.CHANGED
    row.refresh_from_db()
    row.title = ""
    Tool.objects.bulk_update([row], ["title"])
    assert Tool.objects.get().state == State.PUBLISHED


@pytest.mark.parametrize("partly", [True, False])
def test_saving_some_columns_keeps_the_hash_right(partly: bool) -> None:
    published(Tool(name="a"))
    row = Tool.objects.only("title").get() if partly else Tool.objects.get()
    row.title = "New"
    row.save(update_fields=None if partly else ["title"])
    assert Tool.objects.get().state == State.CHANGED


def test_an_old_instance_keeps_what_is_served_under_its_name() -> None:
    row = Tool.objects.create(name="a")
    old = Tool.objects.get()
    published(row)
    Tool.objects.update(broken="Gone.", tokens=7)
    old.title = "Edited"
    old.save()
    now = Tool.objects.get()
    assert now.published_identity == row.published_identity is not None
    assert (now.broken, now.tokens) == ("Gone.", 7)


def choosing(rows: list[Tool]) -> Server:
    server = Server.objects.create(slug="a", selection="chosen")
    server.tools.set(rows)
    server.refresh_from_db()
    return published(server)


def test_a_deleted_definition_leaves_the_choices_of_servers() -> None:
    rows = [Tool.objects.create(name=name) for name in "ab"]
    server = choosing(rows)
    rows[0].delete()
    now = Server.objects.get(pk=server.pk)
    assert now.state == State.CHANGED
    assert now.content_hash == now.working_hash()


def test_a_servers_choice_can_be_put_back() -> None:
    rows = [Tool.objects.create(name=name) for name in "abc"]
    server = choosing(rows[:2])
    assert server.published is not None
    content = server.published.read()
    server.tools.set(rows[2:])
    rows[0].delete()
    server.put_content(content)
    server.save()
    server.put_choices(content)
    assert list(server.tools.all()) == [rows[1]]


def test_a_servers_choice_belongs_to_its_content() -> None:
    tool, server = Tool.objects.create(name="a"), Server.objects.create(slug="a")
    server.selection = "chosen"
    server.save()
    published(server)
    server.tools.add(tool)
    assert Server.objects.get(pk=server.pk).state == State.CHANGED
    server.refresh_from_db()
    assert server.working_content()["chosen"]["tools"] == [tool.pk]
    published(server)
    tool.servers.clear()
    assert Server.objects.get(pk=server.pk).state == State.CHANGED


# -- states -------------------------------------------------------------------------


@pytest.mark.parametrize("model", [Tool, Server])
def test_python_and_the_database_agree_on_states(model: type[Any]) -> None:
    name = "slug" if model is Server else "name"
    sources = ["here"] if model is Server else ["here", "code"]
    cases = product((True, False), ("", "gone"), (None, "same", "other"), sources)
    for number, (held, broken, version, source) in enumerate(cases):
        row = model(broken=broken, **{name: f"t{number}"})
        if model is Tool:
            row.source = source
        row.save()
        if version:
            published(row)
        if version == "other":
            row.title = "Other"
            row.save()
        if held:
            stopped(row)
    overlay = {} if model is Server else {"source": "code"}
    model.objects.create(**{name: "touched"}, title="T", **overlay)
    states = model.objects.with_states(is_stopped(model))
    rows, is_held = list(states), stop_matcher(Stop.objects.on())
    assert {row.reckoned_state for row in rows} == set(State)
    for row in rows:
        state = State.STOPPED if is_held(row) else row.state
        assert row.reckoned_state == state, row
    reckoned = states.filter(reckoned_state=State.CHANGED)
    assert {row.state for row in reckoned} == {State.CHANGED}
