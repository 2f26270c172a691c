"""Events: the outbox, what subscribers are told of it, and how."""
