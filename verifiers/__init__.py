"""Executable references: the sandbox, its supervisor, the checkers and the image."""
