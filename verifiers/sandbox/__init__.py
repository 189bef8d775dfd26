"""Where candidates run: warm containers, or processes without a sandbox."""
