"""Recordings: what was asked and answered, made from sealed cells or imported, replayed strictly, compared."""
