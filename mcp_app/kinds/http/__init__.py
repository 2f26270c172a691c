"""The kind `http`: one call of another site, which staff describe."""
