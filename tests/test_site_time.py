"""All pages write times in one format, of the site's zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import override_settings
from django.utils.timezone import localtime

import mcp_app
from mcp_app.site_time import site_time, time_html, time_text, zone_name

AT = datetime(2026, 3, 7, 19, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize("with_zones", [True, False])
def test_a_moment_has_its_day_and_its_zone(with_zones: bool) -> None:
    zone = "America/Argentina/Buenos_Aires"
    with override_settings(TIME_ZONE=zone, USE_TZ=with_zones):
        assert zone_name() == "Buenos Aires"
        assert time_html(site_time(AT)) == (
            '<time datetime="2026-03-07T16:05:09-03:00"'
            ' title="7 Mar 2026, 16:05:09 (Buenos Aires)">7 Mar 2026, 16:05:09</time>'
        )


def test_of_today_the_time_alone() -> None:
    at = localtime()
    assert time_text(at) == f"{at:%H:%M:%S}"
    assert time_text(at - timedelta(days=1)).endswith(f" {at.year}, {at:%H:%M:%S}")


def test_no_template_has_a_format_of_its_own() -> None:
    templates = Path(mcp_app.__file__).parent.glob("templates/**/*.html")
    own = re.compile(r"\|(?:date|time)(?!:\"YEAR_MONTH)|timesince|timeuntil")
    assert [each.name for each in templates if own.search(each.read_text())] == []
