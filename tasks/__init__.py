"""Prefect tasks: each turns one shard into sealed partitions."""
