"""Who may use a server, and who sees which definitions."""
