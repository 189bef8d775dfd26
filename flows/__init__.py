"""The DAG: Prefect flows, and the command line that starts them."""
