"""Calls to other sites: which there are, where they may lead, and what they cost."""
