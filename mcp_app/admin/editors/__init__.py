"""Editors without JSON: rows, files, choices, and what they cannot show."""
