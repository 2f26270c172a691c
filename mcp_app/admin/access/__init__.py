"""Who may come in, and who sees what."""
