"""Toolsets: one line of code makes the tools of a model, of the admin or of an API."""
