"""The starter benchmark's tasks, one file per theme. The loader parses these files and never imports them."""
