"""Checks of a site: what was observed, as values; findings; and the lines to change."""
