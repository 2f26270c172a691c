"""A call's record and the call log's columns are in step."""

from __future__ import annotations

from mcp_app.interface.call_record import Circumstances, Outcome
from mcp_app.models import Call, CallStatistic


def test_each_column_is_shared_or_a_call_s_own() -> None:
    columns = [field.attname for field in Call._meta.concrete_fields]
    assert sorted(columns) == sorted(["id", *Circumstances._fields[:-1], *Call.OWN])


# -- outcomes --------------------------------------------------------------------------


STORED = (
    "answered asked task arguments invalid unknown forbidden switched_off limited"
    " incapable tool_error other_site egress crashed timed_out too_large shape"
    " cancelled client_gone shut_down unavailable failed"
)


def test_values_as_rows_have_them() -> None:
    assert [each.value for each in Outcome] == STORED.split()
    for each in Outcome:
        assert each.value == each.name.lower()


def test_columns_have_room_for_them() -> None:
    longest = max(map(len, Outcome))
    for model in (Call, CallStatistic):
        assert longest <= (model._meta.get_field("outcome").max_length or 0)
