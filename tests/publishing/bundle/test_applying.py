"""Importing: what was exported is there afterwards, all of it or nothing."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.catalog.registry import mcp
from mcp_app.catalog.row_loader import stored_definition
from mcp_app.interface.rules import text_problem
from mcp_app.kinds import complete_definition, usable_kinds
from mcp_app.models import (
    Blob,
    Change,
    DefinitionVersion,
    PublishedRow,
    Resource,
    Server,
    State,
    Stop,
    Tool,
)
from mcp_app.models.versions import hash_of
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused
from mcp_app.publishing.bundle.applying import MAX_VALUE_LENGTH, report_lines
from mcp_app.publishing.bundle.format import natural_key_of
from mcp_app.publishing.bundle.writing import says_nothing
from mcp_app.publishing.publication import OutOfDate
from tests.drill.skills import FILES, write_skills
from tests.models.recording import as_committed
from tests.published import published, stopped
from tests.publishing.bundle.content import (
    MODELS,
    PICTURE,
    REGISTRY,
    as_bytes,
    clear,
    entry,
    exported,
    fill,
    imported,
    overlay,
    tool,
)

pytestmark = pytest.mark.django_db

Said = dict[tuple[str, str], tuple[str, str, str]]


def definitions() -> Said:
    """What is here but servers, whose hashes depend on primary keys."""
    return {
        (row.kind_of_row, natural_key_of(row)): (
            getattr(row, "source", ""),
            row.content_hash,
            row.published.hash if row.published else "",
        )
        for model in MODELS[1:]
        for row in model.rows().select_related("published")
        if not says_nothing(row)
    }


def moved() -> bytes:
    """Return the file of a site that has some of everything, and leave nothing."""
    fill()
    file = bundle.export_bundle(bundle.everything())
    clear()
    return file


def everything() -> list[tuple[int, int]]:
    return [
        (row.pk, row.lock_version) for model in MODELS for row in model.rows().all()
    ]


def test_what_was_exported_is_at_another_site_with_the_same_hashes() -> None:
    fill()
    before = definitions()
    file = bundle.export_bundle(bundle.everything())
    clear()
    done = imported(file, publish=True)
    publish_servers()
    assert definitions() == before
    assert len(done) == 9
    assert all(row.row.content_hash for row in done)
    server = Server.objects.get(slug="shop")
    assert (server.access, server.page_size) == ("public", 7)
    assert sorted(server.tools.values_list("name", flat=True)) == ["Hours", "hours"]
    assert [row.uri for row in server.resources.all()] == ["shop://logo"]
    assert server.published is not None
    chosen = server.published.read()["chosen"]
    assert chosen["tools"] == sorted(
        Tool.objects.filter(name__in=["hours", "Hours"]).values_list("pk", flat=True)
    )
    # Neither a choice nor a column is lost on the way.
    assert server.content_hash == server.working_hash() == server.published.hash
    assert bytes(Blob.objects.get().content) == PICTURE
    assert Blob.objects.get().media_type == "image/png"


def publish_servers() -> None:
    """Do what staff do for servers that are new here."""
    assert not Server.objects.exclude(published=None).exists()
    Server.objects.publish(Server.objects.all())


def test_a_file_opens_no_server_and_changes_one_that_is_open() -> None:
    file = moved()
    Server.objects.create(slug="shop")
    for _ in range(2):
        imported(file, publish=True)
        assert Server.objects.get(slug="shop").published is None
    publish_servers()
    server = Server.objects.get(slug="shop")
    server.title = "Changed here"
    server.save()
    Server.objects.publish([server])
    imported(file, publish=True)
    server.refresh_from_db()
    assert server.published is not None
    assert server.published.read()["title"] == "Shop"
    assert server.published.note.endswith("by a command. Opened.")


def test_importing_twice_changes_nothing() -> None:
    file = moved()
    imported(file, publish=True)
    before = everything()
    versions = DefinitionVersion.objects.count()
    as_committed()
    assert imported(file, publish=True) == []
    assert everything() == before
    assert DefinitionVersion.objects.count() == versions
    assert not Change.objects.exists()


def test_a_choice_that_lacks_a_list_is_published_once() -> None:
    fill()
    file = exported()
    version = entry(file, "servers", "shop")["published"]
    version["content"]["chosen"] = {"tools": ["hours"]}
    version["hash"] = hash_of(version["content"])
    assert len(imported(as_bytes(file), publish=True)) == 1
    assert imported(as_bytes(file), publish=True) == []


def test_working_copies_reach_no_client() -> None:
    file = moved()
    as_committed()
    imported(file)
    assert not DefinitionVersion.objects.exists()
    row = Tool.objects.get(name="hours")
    assert row.state == State.UNPUBLISHED
    assert row.description == "Tells when the shop is open: changed since."
    # A stopped server without a version is nobody's news but the loader's.
    assert {change.kind for change in Change.objects.all()} <= {"server"}


def test_what_is_published_is_the_version_and_not_the_working_copy() -> None:
    file = moved()
    author = User.objects.create_user("kim")
    read = bundle.read_bundle(file)
    looked_at = bundle.compare_bundle(read, REGISTRY).looked_at
    done = bundle.import_bundle(
        read,
        REGISTRY,
        author=author,
        looked_at=looked_at,
        publish=True,
        origin="staging.json",
    )
    row = Tool.objects.get(name="hours")
    assert row.updated_by == author
    version = row.published
    assert version is not None
    assert version.read()["description"].endswith("Use it when someone asks.")
    assert row.state == State.CHANGED
    assert (version.author, version.number) == (author, 1)
    assert version.note == "Imported from staging.json: version 1 by a command."
    sentences = {each.row: each.sentence for each in done}
    assert sentences[row] == (
        "Imported from staging.json. Published version 1, imported from staging.json."
    )


def test_working_copies_are_published_together_and_only_once(
    django_assert_max_num_queries: Any,
) -> None:
    for number in range(50):
        tool(f"tool_{number}")
    file = bundle.export_bundle(bundle.everything(), published=False)
    clear()
    with django_assert_max_num_queries(280):
        assert len(imported(file, publish=True, working=True)) == 51
    assert {row.state for row in Tool.objects.all()} == {State.PUBLISHED}
    assert Server.objects.get().published is None
    before = everything()
    as_committed()
    with django_assert_max_num_queries(15):
        assert imported(file, publish=True, working=True) == []
    assert everything() == before
    assert DefinitionVersion.objects.count() == 50
    assert not Change.objects.exists()


def test_a_file_that_a_hand_changed_is_published_as_it_is_saved() -> None:
    fill()
    file = exported()
    del file["event_types"]
    hours, shop = entry(file, "tools", "hours"), entry(file, "servers", "shop")
    hours["working"] = {**dict(reversed(hours["working"].items())), "position": 0}
    shop["working"] = {**shop["published"]["content"], "chosen": {"tools": ["hours"]}}
    imported(as_bytes(file), publish=True, working=True)
    for row in (Tool.objects.get(name="hours"), Server.objects.get(slug="shop")):
        assert row.state == State.PUBLISHED
    assert imported(as_bytes(file), publish=True, working=True) == []


def test_a_working_copy_that_cannot_be_published_holds_up_all() -> None:
    row = published(tool())
    file = exported()
    row.name = "renamed"
    row.save()
    with pytest.raises(BundleRefused, match="is published as hours already"):
        imported(as_bytes(file), publish=True, working=True)


def test_nothing_is_removed_switched_or_unpublished() -> None:
    mine = published(tool("mine"))
    theirs = published(tool())
    file = exported()
    del file["tools"][1]
    hours = entry(file, "tools", "hours")
    hours["working"] = {**hours.pop("published")["content"], "title": "Hours"}
    stopped(theirs)
    imported(as_bytes(file), publish=True)
    for row in (mine, theirs):
        row.refresh_from_db()
        assert row.published is not None
    assert theirs.title == "Hours"
    assert len(Stop.objects.on()) == len(Stop.objects.of_rows([theirs])) == 1


def test_a_bad_entry_in_the_middle_leaves_no_trace() -> None:
    fill()
    file = exported()
    logo = entry(file, "resources", "shop://logo")
    del logo["published"]
    logo["working"] = {"name": "Logo", "mime_type": "no type", "uri": "shop://logo"}
    file["blobs"] = []
    clear()
    before = Change.objects.count()
    with pytest.raises(BundleRefused, match="“no type” is not a media type") as refused:
        imported(as_bytes(file))
    assert refused.value.problems[0].startswith("resource “shop://logo”: mime_type: ")
    assert everything() == []
    assert Change.objects.count() == before
    assert not Blob.objects.exists()


def edit() -> None:
    row = Tool.objects.get(name="hours")
    row.title = "Theirs"
    row.save()


def publish() -> None:
    Tool.objects.publish([Tool.objects.get(name="hours")])


def make() -> None:
    Resource.objects.create(name="Logo", uri="shop://logo")


def stop_letting_in() -> None:
    Server.objects.filter(slug="shop").update(access="")


@pytest.mark.parametrize("happen", [edit, publish, make, stop_letting_in])
def test_what_changed_since_it_was_shown_holds_it_up(happen: Any) -> None:
    fill()
    file = bundle.export_bundle(bundle.everything())
    Resource.objects.all().delete()
    read = bundle.read_bundle(file)
    looked_at = bundle.compare_bundle(read, REGISTRY).looked_at
    happen()
    before = everything()
    with pytest.raises(OutOfDate, match="something at this site, has changed"):
        bundle.import_bundle(read, REGISTRY, author=None, looked_at=looked_at)
    assert everything() == before


def test_another_file_than_the_one_shown_is_not_imported() -> None:
    fill()
    file = exported()
    read = bundle.read_bundle(as_bytes(file))
    looked_at = bundle.compare_bundle(read, REGISTRY).looked_at
    file["tools"] = file["servers"] = []
    other = bundle.read_bundle(as_bytes(file))
    with pytest.raises(OutOfDate):
        bundle.import_bundle(other, REGISTRY, author=None, looked_at=looked_at)


def test_a_race_that_the_database_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody makes the same tool between the look and the insert."""
    tool()
    file = bundle.export_bundle(bundle.everything())
    clear()
    save = Tool.save

    def late(self: Tool, *args: Any, **options: Any) -> None:
        monkeypatch.setattr(Tool, "save", save)
        tool()
        save(self, *args, **options)

    read = bundle.read_bundle(file)
    looked_at = bundle.compare_bundle(read, REGISTRY).looked_at
    monkeypatch.setattr(Tool, "save", late)
    with pytest.raises(OutOfDate, match="this file would make, too"):
        bundle.import_bundle(read, REGISTRY, author=None, looked_at=looked_at)
    assert everything() == []


def test_a_choice_takes_the_place_of_the_one_here() -> None:
    fill()
    file = bundle.export_bundle(bundle.everything())
    server = Server.objects.get(slug="shop")
    server.tools.set([Tool.objects.get(name="untouched")])
    imported(file, publish=True)
    server.refresh_from_db()
    assert sorted(server.tools.values_list("name", flat=True)) == ["Hours", "hours"]
    assert server.state == State.PUBLISHED


def test_an_overlay_of_code_that_is_not_here_is_imported_and_broken() -> None:
    file = moved()
    imported(file, publish=True)
    row = Tool.objects.get(name="vanished")
    assert (row.state, row.source, row.title) == (State.BROKEN, "code", "Better")
    assert row.published is not None


def test_overlays_of_readable_things_keep_their_names() -> None:
    Resource.objects.create(
        name="orders", uri="shop://list", source="code", kind="function", title="Orders"
    )
    file = exported()
    assert file["resources"][0]["name"] == "orders"
    clear()
    imported(as_bytes(file))
    row = Resource.objects.get()
    assert (row.name, row.uri, row.source) == ("orders", "shop://list", "code")
    assert (row.kind, row.working_content()) == ("function", {"title": "Orders"})


def test_an_overlay_that_is_put_back() -> None:
    row = overlay()
    server = Server.objects.create(slug="shop", selection="chosen")
    server.tools.set([row])
    file = exported()
    untouched = {"name": "find", "source": "code", "working": {}}
    assert entry(file, "tools", "find") == untouched
    row.title = "Changed"
    row.save()
    imported(as_bytes(file))
    row.refresh_from_db()
    assert row.working_content() == {}


def test_upper_and_lower_case_and_other_letters_are_told_apart() -> None:
    tool("find")
    tool("Find", title="Größer ⟩ 🛒")
    for uri in ("shop://a", "shop://A", "shop://%C3%A9"):
        Resource.objects.create(name="x", uri=uri)
    file = bundle.export_bundle(bundle.everything())
    assert "Größer ⟩ 🛒" in file.decode()
    clear()
    imported(file)
    assert Tool.objects.get(name="Find").title == "Größer ⟩ 🛒"
    assert Tool.objects.get(name="find").title == ""
    assert Resource.objects.count() == 3
    assert imported(file) == []


def test_uploads_of_what_stays_the_same_are_not_stored_again() -> None:
    fill()
    file = bundle.export_bundle(bundle.everything())
    Blob.objects.all().delete()
    assert imported(file, publish=True) == []
    assert not Blob.objects.exists()


def test_a_skill_has_the_same_digests_at_another_site() -> None:
    _server, row, _other = write_skills()
    file, entry = bundle.export_bundle([row]), skill_entry(row)
    assert len(entry["resources"]) == 1 + len(FILES)
    Resource.objects.all().delete()
    Blob.objects.all().delete()
    imported(file, publish=True)
    assert skill_entry(Resource.objects.get()) == entry


def skill_entry(row: Resource) -> Any:
    """Return what clients see of a skill."""
    stored = complete_definition(stored_definition(row), usable_kinds(mcp))
    run = usable_kinds(mcp)["skill"].definition_runnable(
        stored.definition, stored.config, stored.uploads
    )
    return run.skill and run.skill.entry


def test_no_secret_and_nobody_but_authors_are_in_the_file(
    django_user_model: type[User],
) -> None:
    user = django_user_model.objects.create_superuser(
        "maria", "maria@example.com", "a secret word"
    )
    fill()
    row: PublishedRow = Tool.objects.get(name="hours")
    Tool.objects.filter(pk=row.pk).update(updated_by=user)
    Tool.objects.publish([Tool.objects.get(pk=row.pk)], author=user)
    text = bundle.export_bundle(bundle.everything()).decode()
    assert '"author": "maria"' in text
    for secret in ("maria@example.com", user.password, "updated_by", "principal"):
        assert secret not in text
    names: set[str] = set()
    for kind in json.loads(text).values():
        for each in kind if isinstance(kind, list) else ():
            names |= each.keys() | each.get("published", {}).keys()
    assert names == {
        *("slug", "access", "page_size", "name", "uri", "uri_template", "source"),
        *("working", "published", "number", "hash", "note", "author", "created"),
        *("content", "digest", "media_type"),
    }


LINES = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z", "M"]), max_size=20
).filter(lambda text: text_problem(text) is None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="It is a limit of SQLite.")
def test_what_the_database_refuses_is_told_and_nothing_is_imported() -> None:
    tool("long", description="Long. " * 10_000)
    tool("hours")
    file = bundle.export_bundle(bundle.everything())
    clear()
    limit = sqlite3.SQLITE_LIMIT_LENGTH
    before = connection.connection.setlimit(limit, 20_000)
    try:
        with pytest.raises(
            BundleRefused, match=r"database refused the import\. Nothing"
        ):
            imported(file)
    finally:
        connection.connection.setlimit(limit, before)
    assert not Tool.objects.exists()


TEXT_BLOCKS = st.fixed_dictionaries({"type": st.just("text"), "text": LINES})
SEEN = st.fixed_dictionaries(
    {"name": st.from_regex(r"[A-Za-z0-9_.-]{1,20}", fullmatch=True)},
    optional={
        "title": LINES,
        "tags": st.from_regex(r"[A-Za-zé]{1,9}( [a-z]{1,9})?", fullmatch=True),
        "timeout": st.floats(min_value=0.001, max_value=1e300),
        "position": st.integers(-(2**31), 2**31 - 1),
        "destructive": st.booleans(),
        "permission": st.sampled_from(["shop.view_order", ""]),
        "config": st.fixed_dictionaries(
            {"content": st.lists(TEXT_BLOCKS, min_size=1, max_size=2)}
        ),
    },
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=40,
    deadline=None,
)
@given(contents=st.lists(SEEN, max_size=4, unique_by=lambda each: each["name"]))
def test_whatever_is_there_comes_out_as_it_went_in(
    contents: list[dict[str, Any]], db: None
) -> None:
    clear()
    for content in contents:
        row = Tool()
        row.put_content({"config": {}, **content})
        row.save()
    before = definitions()
    file = bundle.export_bundle(bundle.everything())
    clear()
    assert len(imported(file)) == len(contents)
    assert definitions() == before
    assert bundle.export_bundle(bundle.everything()) == file


# -- rights ----------------------------------------------------------------------------


def needed(file: dict[str, Any], *, publish: bool = False) -> dict[str, list[str]]:
    comparison = bundle.compare_bundle(bundle.read_bundle(as_bytes(file)), REGISTRY)
    return {
        right: [each.entry.key for each in entries]
        for right, entries in bundle.needed_rights(comparison, publish=publish).items()
    }


def a_function() -> Tool:
    return tool(kind="function", config='{"function": "shop.find"}')


def test_texts_need_nothing_more() -> None:
    tool("a")
    tool("b")
    overlay("c", title="Better")
    file = exported()
    clear()
    assert needed(file) == {}


def test_a_function_that_something_is_made_to_run() -> None:
    row = a_function()
    file = exported()
    assert needed(file) == {}
    row.title = "Other"
    row.save()
    assert needed(file) == {}
    row.config = '{"function": "shop.other"}'
    row.save()
    assert needed(file) == {"behind": ["hours"]}
    row.kind = "text"
    row.config = "{}"
    row.save()
    assert needed(file) == {"behind": ["hours"]}
    clear()
    assert needed(file) == {"behind": ["hours"]}


@pytest.mark.parametrize(("kind", "rights"), [("station", ["behind"]), ("open", [])])
def test_the_config_of_a_kind_that_a_site_brings(kind: str, rights: list[str]) -> None:
    path = "tests.kinds.stations"
    kinds = {"station": f"{path}.Station", "open": f"{path}.Open"}
    with override_settings(MCP={"KINDS": kinds}):
        row = tool(kind=kind, config='{"station": "hill"}')
        file = exported()
        row.config = '{"station": "harbour"}'
        row.save()
        assert [*needed(file)] == rights


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("query", {"model": "drill.Order"}, {"model": "drill.Customer"}),
        ("http", {"site": "peer", "path": "/a"}, {"site": "peer", "path": "/b"}),
    ],
)
def test_what_is_looked_up_and_called(kind: str, before: Any, after: Any) -> None:
    row = tool(kind=kind, config=json.dumps(before))
    file = exported()
    assert needed(file) == {}
    row.config = json.dumps(after)
    row.save()
    assert needed(file) == {"behind": ["hours"]}
    clear()
    assert needed(file) == {"behind": ["hours"]}


def test_a_function_that_is_taken_away() -> None:
    tool()
    file = exported()
    Tool.objects.all().delete()
    a_function()
    assert needed(file) == {"behind": ["hours"]}


def test_permissions_and_access() -> None:
    tool("a", permission="shop.view_order")
    overlay("b", permission="shop.view_order")
    tool("c")
    tool("d")
    Server.objects.update(access="public")
    file = exported()
    assert needed(file) == {}
    clear()
    assert needed(file) == {"grant": ["default", "a", "b"]}
    tool("a", title="Other", permission="shop.view_order")
    tool("c", permission="shop.view_order")
    tool("d", approval="other")
    assert needed(file) == {"grant": ["default", "b", "c", "d"]}


@pytest.mark.parametrize(
    ("access", "right"), [("", {}), ("token", {}), ("public", {"grant": ["default"]})]
)
def test_a_new_server_starts_with_tokens_or_closed(
    access: str, right: dict[str, list[str]]
) -> None:
    Server.objects.update(access=access)
    file = exported()
    clear()
    assert needed(file) == right


def test_a_server_is_listed_as_the_file_says() -> None:
    older = exported()
    Server.objects.update(listed=True)
    file = exported()
    assert (needed(file), needed(older)) == ({}, {"grant": ["default"]})
    for each, is_listed in ((older, False), (file, True)):
        imported(as_bytes(each))
        assert Server.objects.get().listed is is_listed


def test_publishing() -> None:
    published(a_function())
    file = exported()
    Tool.objects.unpublish([Tool.objects.get()])
    # Somebody with the right has put the function there.
    assert needed(file, publish=True) == {"publish": ["hours"]}
    clear()
    assert needed(file, publish=True) == {"behind": ["hours"], "publish": ["hours"]}


def test_what_only_the_version_says_needs_rights_as_well() -> None:
    row = published(tool(permission="shop.view_order"))
    row.permission = ""
    row.save()
    file = exported()
    assert entry(file, "tools", "hours")["working"]
    clear()
    assert "grant" not in needed(file)
    assert needed(file, publish=True)["grant"] == ["hours"]


def test_what_is_off_the_lists_is_compared_with_the_working_copy() -> None:
    row = published(tool())
    row.approval = "other"
    row.save()
    file = exported()
    Tool.objects.unpublish([row])
    assert needed(file) == {}
    assert needed(file, publish=True)["grant"] == ["hours"]


# -- report ----------------------------------------------------------------------------


LONG = "Tells when the shop is open. " * 40


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("Open.", "Closed.", "“Open.” -> “Closed.”"),
        ("Open  now.", "Open now.", "“Open  now.” -> “Open now.”"),
        ("Open\nnow.", "Open now.", "“Open\\nnow.” -> “Open now.”"),
        ("Open\u200b now.", "Open now.", "“Open⟦U+200B⟧ now.” -> “Open now.”"),
        (f"{LONG}Ask.", f"{LONG}Go.", "shop is open. Ask.” -> “…"),
        (LONG, f"{LONG}\n", "open. ” -> “…"),
        (f"A {LONG}", f"B {LONG}", "…” -> “B Tells"),
    ],
)
def test_two_values_never_read_the_same(before: str, after: str, said: str) -> None:
    tool(description=before)
    file = exported()
    entry(file, "tools", "hours")["working"]["description"] = after
    comparison = bundle.compare_bundle(bundle.read_bundle(as_bytes(file)), REGISTRY)
    [line] = [
        each
        for each in report_lines(comparison, publish=False)
        if each.startswith("  description: ")
    ]
    assert said in line
    old, new = line.removeprefix("  description: ").split(" -> ")
    assert old != new
    assert max(len(old), len(new)) < MAX_VALUE_LENGTH + 20
