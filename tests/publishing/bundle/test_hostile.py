"""Bundles that somebody changed by hand, or by malice: anything anywhere in a file."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_app.models import Blob, DefinitionVersion
from mcp_app.models.versions import hash_of
from mcp_app.publishing import bundle
from mcp_app.publishing.bundle import BundleRefused
from mcp_app.publishing.bundle.applying import report_lines
from tests.publishing.bundle.content import (
    MODELS,
    REGISTRY,
    as_bytes,
    clear,
    exported,
    fill,
    imported,
)

pytestmark = [pytest.mark.django_db, pytest.mark.databases]

Path: TypeAlias = tuple[str | int, ...]

DEEP: Final[Any] = [[[[[[[[[[]]]]]]]]]]
VALUES: Final = st.sampled_from(
    [
        *(None, True, False, 0, -1, 1, 1.5, 1e308, 2**31, 2**63, 10**400, -(10**400)),
        *("", "a", "A", "a" * 300, "a" * 9_000, "x\0y", "\u202e", "ü", "a b", "\ud800"),
        *("hours", "Hours", "shop://logo", "code", "here", "function", "text"),
        *("chosen", "tags", "x:{a}{b}", "[", "(a+)+$"),
        *([], {}, [None], [[]], ["a", "a"], {"a": 1}, {"text": 5}, DEEP),
        *({"upload": "x"}, {"upload": 5}, {"function": []}, {"$ref": "#"}),
        *({"content": [{}]}, {"content": [{"type": []}]}, {"content": "a"}),
        *({"content": [{"type": "image", "upload": 5}]}, {"messages": [5]}),
        {"messages": [{"role": [], "content": {}}]},
        {"type": "object", "properties": {"a": 5}},
        {"type": "object", "required": 5},
        {"type": "object", "properties": {"a": {"enum": 5, "minimum": "a"}}},
        *(
            [{"name": []}],
            [{"name": "a", "suggestions": [5]}],
            [{"src": [], "sizes": 1}],
        ),
        *(
            {"tools": ["nobody"]},
            {"tools": "a"},
            {"audience": [[]]},
            {"priority": True},
        ),
    ]
)


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    inner = value.items() if isinstance(value, dict) else ()
    for step, each in enumerate(value) if isinstance(value, list) else inner:
        yield (*path, step)
        yield from places(each, (*path, step))


def change(file: Any, path: Path, how: str, value: Any) -> None:
    """Change what stands at a place, or take it away, or call it something else."""
    *steps, last = path
    for step in steps:
        file = file[step]
    inside: Any = file
    if how == "delete":
        del inside[last]
    elif how == "twice" and isinstance(file, list):
        inside.append(inside[last])
    elif how == "rename" and isinstance(file, dict):
        inside[str(value)] = inside.pop(last)
    elif how == "more" and isinstance(inside[last], dict):
        inside[last]["more"] = value
    else:
        inside[last] = value


def sign(file: dict[str, Any]) -> None:
    """Give each version the hash of its content, so that more than that is refused."""
    for entries in file.values():
        for entry in entries if isinstance(entries, list) else ():
            published = entry.get("published") if isinstance(entry, dict) else None
            if isinstance(published, dict) and "hash" in published:
                try:
                    published["hash"] = hash_of(published["content"])
                except (KeyError, ValueError):
                    continue


def leave_out_events(file: dict[str, Any]) -> None:
    """Leave out what cannot be published: no code here opens the event's model."""
    del file["event_types"]
    del file["servers"][1]["published"]["content"]["chosen"]["events"]
    sign(file)


def here() -> list[object]:
    """Return all that an import could have changed."""
    rows: list[object] = [
        (str(model), *row)
        for model in MODELS
        for row in model.rows().values_list("pk", "content_hash", "published")
    ]
    counts = Blob.objects.count(), DefinitionVersion.objects.count()
    return [*sorted(map(str, rows)), *counts]


@pytest.fixture(params=["at the same site", "at another site"])
def file(request: pytest.FixtureRequest, db: None) -> dict[str, Any]:
    fill()
    made = exported()
    if request.param == "at another site":
        clear()
    return made


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=150,
    deadline=None,
)
@given(data=st.data())
def test_whatever_was_changed_it_is_imported_or_refused(
    file: dict[str, Any], data: st.DataObject
) -> None:
    changed = copy.deepcopy(file)
    working = data.draw(st.booleans())
    if working:
        leave_out_events(changed)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(changed))))
        how = data.draw(
            st.sampled_from(["set", "set", "set", "delete", "twice", "rename", "more"])
        )
        change(changed, path, how, copy.deepcopy(data.draw(VALUES)))
    if data.draw(st.booleans()):
        sign(changed)
    publish = working or data.draw(st.booleans())
    before = here()
    problems = ["whatever was refused"]
    with transaction.atomic():
        try:
            read = bundle.read_bundle(as_bytes(changed))
            read = replace(read, publishes_working=working)
            compared = bundle.compare_bundle(read, REGISTRY)
            assert list(report_lines(compared, publish=publish))
            assert bundle.needed_rights(compared, publish=publish) is not None
            bundle.import_bundle(
                read,
                REGISTRY,
                author=None,
                looked_at=compared.looked_at,
                publish=publish,
            )
            for model in MODELS[1:]:
                for row in model.rows().all():
                    assert row.content_hash == row.working_hash()
            assert not imported(as_bytes(changed), publish=publish, working=working)
        except BundleRefused as refused:
            problems = [*refused.problems]
            # What it wrote before is rolled back with it, and not by the test.
            changed_rows = here() != before
        else:
            changed_rows = False
        transaction.set_rollback(True)
    assert all(problems)
    assert not changed_rows
