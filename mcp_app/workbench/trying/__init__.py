"""Trying a definition from the admin: in earnest, or so that all is undone."""
