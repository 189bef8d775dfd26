"""The container image that candidates run in."""
