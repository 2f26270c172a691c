"""What monitoring reads of the whole site, from the database."""
