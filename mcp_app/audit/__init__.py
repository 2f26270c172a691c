"""Who called what, and what became of it: written behind, in batches."""
