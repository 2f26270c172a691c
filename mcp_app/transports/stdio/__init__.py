"""stdio: one client on standard input and output."""
