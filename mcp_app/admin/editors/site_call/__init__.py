"""A call of another site, as a form."""
