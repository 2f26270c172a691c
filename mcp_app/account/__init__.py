"""Access tokens as users manage them: shared by the admin and the users' own page."""
