"""`make clients`: what real clients can do with this server, as a table."""
