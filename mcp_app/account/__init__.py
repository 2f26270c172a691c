"""Access tokens as people make them: what the admin and the users' own page share."""
