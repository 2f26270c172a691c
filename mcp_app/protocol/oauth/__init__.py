"""An authorization server (OAuth 2.1) as far as it needs no row, clock or socket."""
