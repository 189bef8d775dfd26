"""Statistics: arrays in, frozen dataclasses out."""
