"""How changes are told: rows, and the check that finds them."""
