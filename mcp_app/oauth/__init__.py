"""The authorization server: programs sign in, and a person allows what they may."""
