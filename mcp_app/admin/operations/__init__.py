"""What runs now, and how to stop it."""
