"""Ports that cannot be served on."""

from __future__ import annotations

from contextlib import closing

import pytest

from mcp_project.port import problem
from tests.drill.ports import claimed, free_port


def test_a_free_port_is_no_problem_and_stays_free() -> None:
    port = free_port()
    assert problem(str(port)) is None
    claimed(port).close()


def test_a_port_that_another_program_uses() -> None:
    port = free_port()
    with closing(claimed(port)):
        assert problem(str(port)) == (
            f"Another program uses the port {port} of 127.0.0.1. "
            f"Choose another: make run PORT={port + 1}"
        )


@pytest.mark.parametrize("port", ["", "-1", "0", "65536", "\u0668\u0660", "http"])
def test_what_is_no_port(port: str) -> None:
    assert problem(port) == (
        f"PORT={port} is no port: it must be a number from 1 to 65535."
    )
