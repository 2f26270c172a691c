"""A pytest plugin: assertions are rewritten once, and not by each worker anew.

Workers begin together, and each finds nothing that the others have written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Write what is missing; a module that has changed is left to the workers."""
    if sys.dont_write_bytecode:
        return
    for module in _modules(config):
        cached = get_cache_dir(module) / f"{module.stem}{PYC_TAIL}"
        if not cached.exists():
            cached.parent.mkdir(parents=True, exist_ok=True)
            # What is no Python is told by who collects it.
            with suppress(SyntaxError):
                digest, code = _rewrite_test(module, config)
                _write_pyc(config.stash[assertstate_key], code, digest, cached)


def _modules(config: pytest.Config) -> Iterator[Path]:
    """Find the modules of the folders that are asked for."""
    for argument in config.args:
        folder = config.invocation_params.dir / argument
        if folder.is_dir():
            yield from folder.rglob("test_*.py")
