"""Loaders: each reads one format and gives a Benchmark."""
