"""What every page of the admin has: its header, states in words, what was deleted."""
