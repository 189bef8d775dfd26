"""Sending requests: when, how often, at what cost, and how it is written down before it counts."""
