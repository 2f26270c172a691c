"""What a bundle is made of: entries, their names, and the hash of a content."""

from __future__ import annotations

from mcp_app.models import Server
from mcp_app.models.versions import hash_of
from mcp_app.publishing.bundle.format import CHOICES, LISTS


def test_servers_come_first_and_a_choice_is_of_each_kind() -> None:
    assert next(iter(LISTS.values())) is Server
    assert [Server, *CHOICES.values()] == [*LISTS.values()]
    for name, model in CHOICES.items():
        assert Server._meta.get_field(name).related_model is model


def test_the_order_of_members_is_part_of_a_hash() -> None:
    assert hash_of({"a": 1, "b": 2}) != hash_of({"b": 2, "a": 1})
