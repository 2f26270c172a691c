"""The environments of clients: where they are, and why one cannot be had."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.clients import environments
from benchmarks.clients.catalog import ALL, BY_NAME, FACETS, NODE, Client
from benchmarks.clients.environments import (
    DRIVERS,
    InstallError,
    commands,
    folder,
    prepare,
    reason,
    stamp,
)

PIP = Client(name="a", title="A", packages=("a==1",), driver="drive_a.py")
NPM = replace(PIP, kind=NODE, driver="drive_a.mjs")


def test_each_client_has_a_folder_a_driver_and_pinned_packages() -> None:
    assert len(BY_NAME) == len(ALL)
    for client in ALL:
        assert (DRIVERS / client.driver).is_file(), client.name
        mark = "@" if client.kind == NODE else "=="
        assert mark in client.packages[0].lstrip("@"), client.name
        assert client.lacks | client.limits <= set(FACETS), client.name
        assert not client.host or client.host in BY_NAME


def test_other_requirements_are_installed_anew() -> None:
    newer = replace(PIP, packages=("a==2",))
    assert len({stamp(each) for each in (PIP, newer, NPM)}) == 3
    assert stamp(PIP) == stamp(replace(PIP, title="B"))


def test_what_is_there_is_not_installed_again(tmp_path: Path) -> None:
    place = folder(PIP, tmp_path)
    place.mkdir()
    (place / stamp(PIP)).touch()
    (place / "kept").touch()
    assert prepare(PIP, tmp_path) == place
    assert (place / "kept").is_file()


def test_drivers_lie_beside_the_packages_of_node(tmp_path: Path) -> None:
    place = folder(NPM, tmp_path)
    place.mkdir()
    (place / stamp(NPM)).touch()
    prepare(NPM, tmp_path)
    assert (place / "driving.mjs").read_text() == (DRIVERS / "driving.mjs").read_text()


def test_whatever_fails_is_named_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "import sys; sys.exit('looking\\nERROR: No matching distribution for a')"
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(environments, "commands", lambda client, place: [command])
    with pytest.raises(InstallError, match=r"^ERROR: No matching distribution for a$"):
        prepare(PIP, tmp_path)
    assert not (folder(PIP, tmp_path) / stamp(PIP)).exists()


def test_one_that_takes_too_long_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(environments, "commands", lambda client, place: [command])
    monkeypatch.setattr(environments, "INSTALL_S", 0)
    with pytest.raises(InstallError, match="not done after"):
        prepare(PIP, tmp_path)


def test_all_requirements_are_given_at_once(tmp_path: Path) -> None:
    client = replace(PIP, packages=("a==1", "b<2"))
    assert commands(client, tmp_path)[-1][-2:] == ["a==1", "b<2"]
    assert commands(replace(NPM, packages=("a@1",)), tmp_path)[-1][-1] == "a@1"
    assert (tmp_path / "package.json").is_file()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("one\nERROR: none\n\n[notice] A new release\n", "ERROR: none"),
        ("npm error 404 x\nnpm error A complete log of this: y\n", "npm error 404 x"),
        ("not at https://example.com/simple/a/\n", "not at …"),
        ("", "it said nothing"),
    ],
)
def test_the_reason_is_the_last_line_without_addresses(written: str, told: str) -> None:
    assert reason(written) == told
