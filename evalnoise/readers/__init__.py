"""From the catalog's views to arrays: what the statistics take."""
