"""What staff write in the admin that could never work, or hides something."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.admin.pages import errors, fill_in, page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("version", ["1\u202e", "1\U000e0041"])
def test_a_version_hides_nothing(admin_client: Client, version: str) -> None:
    typed = {"slug": "shop", "version": version}
    found = errors(fill_in(admin_client, page("server", "add"), **typed))
    assert "hidden character" in found["version"]


def test_a_text_keeps_no_promise_of_structured_content(admin_client: Client) -> None:
    typed = {
        "name": "policy",
        "text": "No returns.",
        "output_schema": '{"type": "object", "required": ["days"]}',
    }
    found = errors(fill_in(admin_client, page("tool", "add"), **typed))
    assert "requires structured content" in found["output_schema"]
