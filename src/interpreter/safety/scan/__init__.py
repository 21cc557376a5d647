"""What scanners say about a block before it runs."""

from interpreter.safety.scan.findings import Finding, Scan, Severity
from interpreter.safety.scan.scanner import Scanner, scan

__all__ = ["Finding", "Scan", "Scanner", "Severity", "scan"]
