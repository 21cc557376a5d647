"""Benchmarks: what the interpreter costs, against its budgets, against the bare limit, and against 0.4.3."""
