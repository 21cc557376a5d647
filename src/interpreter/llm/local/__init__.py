"""Models on this machine: servers that run already, and an engine and weights of our own."""
