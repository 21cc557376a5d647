"""Benchmarks: the interpreter's costs compared with its budgets, the bare limit, and 0.4.3."""
