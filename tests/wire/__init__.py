"""Local servers that speak the providers' wire protocols over real HTTP, with faults on demand."""
