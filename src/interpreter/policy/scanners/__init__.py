"""What scanners say about a block before it runs."""

from interpreter.policy.scanners.findings import (
    Finding,
    Scan,
    Severity,
)
from interpreter.policy.scanners.scanner import Scanner, scan

__all__ = ["Finding", "Scan", "Scanner", "Severity", "scan"]
