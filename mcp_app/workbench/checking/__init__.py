"""The doctor: what was seen of a site, as values; findings; and the lines to change."""
