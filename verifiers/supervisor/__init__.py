"""What runs inside the sandbox: standard library alone."""
