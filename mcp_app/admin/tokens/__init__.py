"""The admin of access tokens."""
