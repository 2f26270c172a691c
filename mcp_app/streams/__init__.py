"""Sessions, the replay log, questions to clients, steps that run once, and streams."""
