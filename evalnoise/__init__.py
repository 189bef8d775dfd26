"""The instrument: providers, recordings, store, benchmarks, statistics and reports. No Prefect in it."""
