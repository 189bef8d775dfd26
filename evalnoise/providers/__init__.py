"""Where responses come from: SDKs, recordings and the oracle."""
