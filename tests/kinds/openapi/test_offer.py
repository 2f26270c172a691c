"""An offer goes into a row and comes back the same."""

from __future__ import annotations

import pytest

from mcp_app.kinds.openapi.reading import Offer


@pytest.mark.parametrize(
    "offer",
    [
        Offer(key="GET /a b", name="a", tags=("x", "y"), remarks=("r",)),
        Offer(key="POST /", name="", bar="it wants a file"),
        Offer(key="PUT /a", name="a", input_schema={"type": "object"}, config={"a": 1}),
    ],
)
def test_offers_in_rows(offer: Offer) -> None:
    assert Offer.from_json(offer.to_json()) == offer


def test_method_and_path() -> None:
    offer = Offer(key="GET /a b", name="a")
    assert (offer.method, offer.path) == ("GET", "/a b")
    assert offer.to_json() == {"key": "GET /a b", "name": "a"}
