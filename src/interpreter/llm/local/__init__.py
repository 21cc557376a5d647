"""Models on this machine: servers that are running, and the built-in engine."""
