"""A tool's parameters as rows of a table."""
