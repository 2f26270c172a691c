"""SKILL.md: frontmatter as hosts read it, names and paths."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest

from mcp_app.protocol.frontmatter import read_frontmatter, render_skill_file
from mcp_app.protocol.skills import Skill

PLAIN: Final[dict[str, object]] = {
    **{"": None, "~": None, "null": None, "true": True, "False": False},
    **{"yes": "yes", "no": "no", "on": "on", "off": "off", "y": "y", "<<": "<<"},
    **{"2026-01-01": "2026-01-01", "1:30": "1:30", "012": 12, "0o14": 12, "0xC": 12},
    **{"1_000": "1_000", "1e3": 1000.0, "1.5": 1.5, ".5": 0.5, "-7": -7, "1.": 1.0},
    **{"1.2.3": "1.2.3", "=": "=", "0b1": "0b1", "1:2:3": "1:2:3"},
}
"""What YAML 1.2 makes of plain values (10.3.2); older readers differ in most."""
CHARACTERS: Final = "aZ0 -:#'\"\\\t\n{}[],&*!|>%@`?~é😀\x7f\x85\u2028\u2029\ufeff\ufffe"
REFUSED: Final = {
    "name: a": "Line 1: SKILL.md has no frontmatter",
    "---\na: b": "Line 1: SKILL.md has no frontmatter",
    "---\na: &b c\n---\n": "Line 2: Anchors, aliases and tags",
    "---\na: c\nb: *a\n---\n": "Line 3: Anchors, aliases and tags",
    "---\na: !!str 1\n---\n": "Line 2: Anchors, aliases and tags",
    "---\nb: 1\na: 1\na: 2\n---\n": "Line 4: The name 'a' must be a text",
    "---\n1: 2\n---\n": "Line 2: The name 1 must be a text",
    "---\na: .inf\n---\n": "Line 2: .inf is no number",
    "---\na: b: c\n---\n": "Line 2: mapping values are not allowed",
    "---\n---\n": "Line 2: Write the fields",
    "---\n- a\n---\n": "Line 2: Write the fields",
    "---\na: b\n--- c\n---\n": "Line 2: Write the fields",
    "---\na: \x01\n---\n": "Line 2: unacceptable character",
    f"---\na: {'[' * 40}{']' * 40}\n---\n": "Line 2: Write at most 32 levels",
    f"---\na: {'b' * 2**16}\n---\n": "Line 2: Write at most 65536 characters",
}


def random_text(random: Random) -> str:
    return "".join(random.choices(CHARACTERS, k=random.randrange(9)))


def random_value(random: Random, depth: int = 0) -> Any:
    kind = random.randrange(8 if depth < 4 else 5)
    if kind >= 6:
        return [random_value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 5:
        names = [random_text(random) for _ in range(random.randrange(4))]
        return {each: random_value(random, depth + 1) for each in names}
    if kind == 0:
        return random.choice([None, True, False, 0, -1, 2**53, 1.5, 1e22, -1e-9])
    return random.choice([random_text(random), *PLAIN, ".inf", "---", "- a", "a: b"])


def random_documents(count: int) -> list[tuple[dict[str, Any], str]]:
    """Return frontmatters with their SKILL.md, the same each time."""
    random, documents = Random(2640), []  # noqa: S311 - no secret
    for _ in range(count):
        more = {random_text(random): random_value(random) for _ in range(4)}
        frontmatter = {"name": "a", "description": random_text(random) or "a", **more}
        text = render_skill_file(frontmatter, "\n---\nname: b\n").decode()
        documents.append((frontmatter, text))
    return documents


def test_plain_values_are_read_as_hosts_read_them() -> None:
    for text, value in PLAIN.items():
        content = f"\ufeff---\r\nvalue: {text}\r\n---  \r\n".encode()
        read = read_frontmatter(content)["value"]
        assert (read, type(read)) == (value, type(value)), text


def test_what_is_rendered_is_read_as_it_was() -> None:
    for frontmatter, text in random_documents(1_000):
        assert read_frontmatter(text.encode()) == frontmatter, text


def test_frontmatter_that_programs_read_differently_is_refused() -> None:
    for text, problem in REFUSED.items():
        with pytest.raises(ValueError, match="Line") as refused:
            read_frontmatter(text.encode())
        assert str(refused.value).startswith(problem), text


def make_skill(*paths: str, root: str = "skill://shop/a", **more: Any) -> Skill:
    frontmatter = {"name": "a", "description": "Use it.", **more}
    files = dict.fromkeys(["SKILL.md", *paths], (b"", ""))
    return Skill(f"{root}/SKILL.md", frontmatter, files)


def test_names_addresses_and_paths_of_a_skill() -> None:
    assert make_skill("é/b c.py", root="skill://a").read("é/b c.py").uri == (
        "skill://a/%C3%A9/b%20c.py"
    )
    for root in ("skill://b", "skill://a/", "skill://../a", "x://a", "skill://s t/a"):
        with pytest.raises(ValueError, match="cannot be the address"):
            make_skill(root=root)
    for name in ("", "A", "-a", "a-", "a--b", "a_b", "a" * 65, 1):
        with pytest.raises(ValueError, match="cannot be the name of a skill"):
            make_skill(name=name)
    for words in ("", " ", "x" * 1025, None):
        with pytest.raises(ValueError, match="must say when to use it"):
            make_skill(description=words)
    more: list[dict[str, Any]] = [{"license": 1}, {"compatibility": ""}]
    for fields in (*more, {"metadata": {"a": 1}}, {"metadata": "a"}):
        with pytest.raises(ValueError, match="each value of metadata are texts"):
            make_skill(**fields)
    for path in ("/a", "a/", "a//b", "../a", "a/./b", "a\\b", "a\nb", "x" * 256):
        with pytest.raises(ValueError, match="cannot be the path of a file"):
            make_skill(path)
    for pair in (("b", "B"), ("b/c", "B/d"), ("b", "b/c"), ("skill.md",)):
        with pytest.raises(ValueError, match="is there more than once"):
            make_skill(*pair)
    with pytest.raises(ValueError, match="at most 512 files; this one has 513"):
        make_skill(*map(str, range(512)))
