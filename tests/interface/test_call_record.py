"""A call's record and the call log's columns are in step."""

from __future__ import annotations

from mcp_app.interface.call_record import Circumstances
from mcp_app.models import Call


def test_each_column_is_shared_or_a_call_s_own() -> None:
    columns = [field.attname for field in Call._meta.concrete_fields]
    assert sorted(columns) == sorted(["id", *Circumstances._fields, *Call.OWN])
