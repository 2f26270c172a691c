"""A site that hires out machines: three companies, who see their own rows only."""
