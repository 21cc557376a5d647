"""Safe mode: external scanners look at a block before it runs."""

from interpreter.scanners.scanner import Scanner, scan

__all__ = ["Scanner", "scan"]
