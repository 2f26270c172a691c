"""The call log as staff read it: a list, one call in full, and refused requests."""
