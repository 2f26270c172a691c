"""The log of calls, as staff read it: a list, one call in full, who was turned away."""
