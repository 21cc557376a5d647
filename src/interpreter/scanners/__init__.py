"""Safe mode: external scanners look at a block before it runs."""

from interpreter.policy.scan import Finding, Scan, Severity
from interpreter.scanners.scanner import Scanner, scan

__all__ = ["Finding", "Scan", "Scanner", "Severity", "scan"]
