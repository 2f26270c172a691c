"""Access tokens: their lists and pages."""
