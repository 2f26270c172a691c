"""What is promised of changes, tried for long on clusters of real processes."""
