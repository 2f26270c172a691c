"""The kind `http`: one call to another site, which staff describe."""
