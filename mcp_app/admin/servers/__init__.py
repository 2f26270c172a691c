"""The admin of servers."""
