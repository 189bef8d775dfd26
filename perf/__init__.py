"""Measurements: `python -m perf.NAME` prints figures and ratios."""
