"""The sandbox in which runtimes run: what they can and cannot reach."""
