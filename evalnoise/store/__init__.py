"""The store: journal, partitions, manifest, lock and catalog."""
