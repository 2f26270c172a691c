"""What all admin pages share: the header, wording, stops, and deleted rows."""
