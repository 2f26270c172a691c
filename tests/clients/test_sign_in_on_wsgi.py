"""The Python and TypeScript SDKs sign in where the site runs under WSGI."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.clients import test_sign_in, test_sign_in_in_node
from tests.clients.signing import Site, site
from tests.clients.test_sign_in import document, window
from tests.clients.test_sign_in_in_node import report

__all__ = ["document", "report", "window"]

pytestmark = [
    *[test_sign_in.pytestmark[0]],
    pytest.mark.xdist_group("signing in on WSGI"),
]

ALWAYS: Final = ("test_the_sdk_signs_in_and_refreshes",)
STREAMED: Final = ("test_it_is_told_when_it_may_less",)
"""What is told on a stream, of which there are none."""

globals().update(
    {
        name: test
        for module in (test_sign_in, test_sign_in_in_node)
        for name, test in vars(module).items()
        if name.startswith("test_") and name not in STREAMED
    }
)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("signed"), "gunicorn") as served:
        yield served
