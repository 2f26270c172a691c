"""Sessions, questions on their way, steps that happen once, and open streams."""
