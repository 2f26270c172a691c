"""A site of its own, whose suite is written as users write theirs."""
