"""Tokens of external issuers: JWTs that somebody else signs (RFC 9068)."""
