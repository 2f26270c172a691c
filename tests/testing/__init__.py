"""The test client, as a site's own suite uses it."""
