"""Skills as folders beside the code: what is served of them, and what is told."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_app.catalog.registry import Registry
from mcp_app.interface.errors import RegistrationError

HEAD: Final = "---\nname: refunds\ndescription: Use it to pay back.\n"


def write_skill(top: Path, text: str, name: str = "refunds", **files: bytes) -> None:
    folder = top / name
    folder.mkdir()
    (folder / "SKILL.md").write_bytes(text.encode())
    for path, content in files.items():
        file = folder / path.replace("__", "/").replace("_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def declare(top: Path, **options: Any) -> Registry:
    registry = Registry()
    registry.skills(str(top), **options)
    return registry


def test_a_folder_is_served_as_it_is(tmp_path: Path) -> None:
    text = HEAD + "version: 012\r\n---\r\n\r\n# Refunds\r\n"
    write_skill(tmp_path, text, letters__a_md=b"A", b_bin=b"\0", _hidden=b"x")
    (tmp_path / "refunds" / "__pycache__").mkdir()
    (tmp_path / "refunds" / "__pycache__" / "a.pyc").write_bytes(b"x")
    (tmp_path / "refunds" / "link.md").symlink_to("/etc/hostname")
    (tmp_path / "notes").mkdir()
    options: Any = {"prefix": "shop/help", "permission": "shop.view", "tags": ["a"]}
    (declared,) = declare(tmp_path, **options).resources.values()
    definition = declared.definition
    root = "skill://shop/help/refunds"
    assert definition.uri == f"{root}/SKILL.md"
    assert definition.demands.permissions == ("shop.view",)
    assert definition.tags == {"a"}
    skill = declared.function.resource_runnable().skill
    assert skill is not None
    entry = skill.entry
    assert {each["uri"]: each["digest"] for each in entry["resources"]} == {
        f"{root}/{path}": f"sha256:{sha256(content).hexdigest()}"
        for path, content in {
            "SKILL.md": text.encode(),
            "letters/a.md": b"A",
            "b.bin": b"\0",
        }.items()
    }
    # As hosts read it: a number, and no octal one.
    assert entry["frontmatter"]["version"] == 12


BROKEN: Final = [
    ("# Refunds\n", {}, "Line 1: SKILL.md has no frontmatter"),
    (HEAD.replace("refunds", "Refunds") + "---\n", {}, "Its name is 'Refunds'"),
    ("---\nname: refunds\n---\n", {}, "The description of a skill must say"),
    (HEAD + "a: [\n---\n", {}, "Line 5: "),
    (HEAD + "---\n", {"a_bin": bytes(4_194_304)}, "LIMITS['skill'] allows 4194304"),
    (HEAD + 'a: "\\ud800"\n---\n', {}, "$.a has half of a surrogate pair. Leave it"),
    (HEAD + 'a: "\\0"\n---\n', {}, "Line 2: A value has the character NUL."),
    (HEAD + "---\n", {"a_md": b"", "A_md": b""}, "'a.md' is there more than once"),
]


@pytest.mark.parametrize(("text", "files", "sentence"), BROKEN)
def test_what_is_wrong_is_told_and_the_others_are_served(
    tmp_path: Path, text: str, files: dict[str, bytes], sentence: str
) -> None:
    write_skill(tmp_path, text, "refunds", **files)
    write_skill(tmp_path, HEAD.replace("refunds", "letters") + "---\n", "letters")
    registry = Registry()
    with pytest.raises(RegistrationError) as caught:
        registry.skills(str(tmp_path))
    assert f"{tmp_path}/refunds/SKILL.md: " in str(caught.value)
    assert sentence in str(caught.value)
    assert [*registry.resources] == ["skill://letters/SKILL.md"]


def test_two_cannot_have_one_address(tmp_path: Path) -> None:
    """Else the later one would take the rights of the earlier one away."""
    write_skill(tmp_path, HEAD + "---\n")
    registry = Registry()
    line = f"registry.skills({str(tmp_path)!r}, permission='a.b')\n"
    for code, name in ((2 * line, "shop.mcp"), (line, "other.mcp")):
        with pytest.raises(RegistrationError, match=r"already declared by shop\.mcp"):
            exec(code, {"__name__": name, "registry": registry})  # noqa: S102
    # A later load of the module.
    exec(line, {"__name__": "shop.mcp", "registry": registry})  # noqa: S102


def test_a_link_is_no_skill(tmp_path: Path) -> None:
    write_skill(tmp_path, HEAD + "---\n")
    (tmp_path / "letters").mkdir()
    link = tmp_path / "letters" / "SKILL.md"
    (tmp_path / "SKILL.md").write_text(HEAD.replace("refunds", "letters") + "---\n")
    link.symlink_to(tmp_path / "SKILL.md")
    registry = Registry()
    with pytest.raises(RegistrationError, match=r"letters/SKILL\.md: It is a link\."):
        registry.skills(str(tmp_path))
    assert [*registry.resources] == ["skill://refunds/SKILL.md"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"ttl_ms": -1}, "The ttl_ms is -1"),
        ({"permission": "orders"}, "orders"),
        ({"tags": ["a/b"]}, "“a/b” cannot be a tag"),
    ],
)
def test_options_are_held_to_the_rules_of_resources(
    tmp_path: Path, options: Any, sentence: str
) -> None:
    write_skill(tmp_path, HEAD + "---\n")
    with pytest.raises(RegistrationError, match=sentence):
        declare(tmp_path, **options)


def test_a_folder_without_a_skill_says_so(tmp_path: Path) -> None:
    with pytest.raises(RegistrationError, match=r"no folder in .* has a SKILL\.md"):
        declare(tmp_path)
