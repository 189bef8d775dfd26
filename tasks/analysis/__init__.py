"""Rows of `estimates`, `contrasts` and `budgets`: the statistics of a protocol, each with its method and what it covers."""
