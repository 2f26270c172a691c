from __future__ import annotations

import io
import re
import stat
import tracemalloc
import zipfile

import pytest

from mcp_app.catalog.skill_zip import read_skill_zip

SKILL = b"---\nname: refunds\ndescription: Refunds\n---\n\n# Refunds\n"
MIB = 1024 * 1024


def packed(*entries: tuple[str, bytes], mode: int = 0, flag: int = 0) -> bytes:
    """Return a zip; the last entry has this mode and this flag."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in entries:
            archive.writestr(
                info := zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED
            )
        info.external_attr = mode << 16
        info.flag_bits |= flag
    return buffer.getvalue()


TOP = ("SKILL.md", SKILL)
REFUSED = {
    "bomb": (packed(TOP, ("a", b"0" * 100 * MIB)), "allows 4,194,304"),
    "entries": (packed(TOP, *((f"{n}", b"") for n in range(599))), "it has 600"),
    "above": (packed(TOP, ("../a", b"")), "'../a' cannot be"),
    "absolute": (packed(TOP, ("/etc/a", b"")), "'/etc/a' cannot be"),
    "backslash": (packed(TOP, ("a\\b", b"")), "no backslash"),
    "link": (packed(TOP, ("a", b"/etc"), mode=stat.S_IFLNK), "'a' is a link"),
    "case": (packed(TOP, ("a/B", b""), ("a/b", b"")), "more than once"),
    "encrypted": (packed(TOP, ("a", b""), flag=1), "'a' is encrypted"),
    "no SKILL.md": (packed(("a/b.md", b""), ("c", b"")), "no SKILL.md"),
    "broken YAML": (packed(("a/SKILL.md", b"---\nname: [\n---\n")), "Line 3: "),
    "surrogate": (
        packed(("SKILL.md", SKILL[:18] + b'a: "\\udfff"\n' + SKILL[18:])),
        "$.a",
    ),
    "not a zip": (b"PK\3\4 or so", "The zip cannot be read: "),
    "neither": (b"Rar!", "Line 1: SKILL.md has no frontmatter"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_skill_is_refused_within_bounds(name: str) -> None:
    content, sentence = REFUSED[name]
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            read_skill_zip(content)
        assert tracemalloc.get_traced_memory()[1] < 20 * MIB
    finally:
        tracemalloc.stop()


def test_one_folder_is_taken_off_and_hidden_files_are_left_out() -> None:
    hidden = ("__MACOSX/refunds/._a", b""), ("refunds/.DS_Store", b"")
    files = ("refunds/SKILL.md", SKILL), ("refunds/docs/a.md", b"A"), *hidden
    read = read_skill_zip(packed(*files))
    assert read.frontmatter == {"name": "refunds", "description": "Refunds"}
    assert (read.body, read.files) == ("# Refunds\n", {"docs/a.md": b"A"})
    assert read.left_out == ("__MACOSX/refunds/._a", "refunds/.DS_Store")
