"""What user code sees: abstract, and free of any framework."""
