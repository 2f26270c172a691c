"""What the client's model said."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_app import ToolError, within
from mcp_app.interface.questions import Root, SamplingResult, ToolOutput
from mcp_app.protocol.content import Image, Text


def test_the_text_of_all_text_blocks() -> None:
    image = Image(b"x", "image/png")
    for blocks, text in (
        ([], ""),
        ([Text("a"), image, Text(" b")], "a b"),
        ([image], ""),
    ):
        result = SamplingResult(role="assistant", content=blocks, model="m")
        assert result.text == text


# -- roots -----------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a folder with two roots, `shop` and `a b`, and a file outside."""
    for name in ("shop/deep", "a b", "outside"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("shop/one", "a b/two", "outside/secret", "shop-two"):
        (tmp_path / name).write_text(name)
    (tmp_path / "shop" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "shop" / "over").symlink_to(tmp_path / "a b")
    (tmp_path / "shop" / "loop").symlink_to("loop")
    return tmp_path.resolve()


def roots_of(disk: Path) -> list[Root]:
    return [Root(uri=(disk / name).as_uri()) for name in ("shop", "a b")]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("one", "shop/one"),
        ("two", "a b/two"),
        ("deep/../one", "shop/one"),
        ("new/file", "shop/new/file"),
        ("over/two", "a b/two"),
        ("../a b/two", "a b/two"),
        (".", "shop"),
    ],
)
def test_what_is_inside(disk: Path, path: str, found: str) -> None:
    assert within(roots_of(disk), path) == disk / found
    assert within(roots_of(disk), disk / found) == disk / found


@pytest.mark.parametrize(
    "path",
    ["..", "../outside/secret", "../shop-two", "out/secret", "out/../secret", "/"],
)
def test_what_is_outside(disk: Path, path: str) -> None:
    with pytest.raises(ToolError, match="is outside the client's root folders"):
        within(roots_of(disk), path)
    with pytest.raises(ToolError, match="is outside the client's root folders"):
        within(roots_of(disk), disk / "shop" / path)


@pytest.mark.parametrize("path", ["loop", "loop/one", "a\0b"])
def test_what_leads_nowhere_ends(disk: Path, path: str) -> None:
    """A loop of links that is within a root leads nowhere else."""
    try:
        found = within(roots_of(disk), path)
    except ToolError:
        return
    assert found.is_relative_to(disk / "shop")


def test_roots_that_are_gone(disk: Path) -> None:
    first, second = roots_of(disk)
    gone = Root(uri=(disk / "gone").as_uri())
    assert within([gone, second], "two") == disk / "a b" / "two"
    with pytest.raises(ToolError, match="outside"):
        within([gone, second], disk / "gone" / "one")
    elsewhere = Root(uri=f"file://elsewhere{disk / 'shop'}")
    other = Root(uri=first.uri.replace("file", "https"))
    broken = Root(uri="file:///a%00b")
    for roots in ([], [gone], [elsewhere], [other], [broken]):
        with pytest.raises(ToolError, match="None of the client's root folders"):
            within(roots, "one")


# -- results ---------------------------------------------------------------------------


def test_meta_of_a_result_has_keys_of_ours() -> None:
    meta = {"com.example/cost": 3, "traceparent": "00-0-0-00"}
    assert ToolOutput([Text("t")], meta=meta).meta == meta
    with pytest.raises(ValueError, match=r"'io\.mcp/cost' of _meta is reserved"):
        ToolOutput([Text("t")], meta={"io.mcp/cost": 3})
