"""The built-in engine, which runs a model on this machine, and its downloads."""
