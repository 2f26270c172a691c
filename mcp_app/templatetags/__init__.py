"""Tags for templates of the admin."""
