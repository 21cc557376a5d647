"""What scanners say about a block before it runs."""

from interpreter.policy.scanners.scanner import (
    Finding,
    Scan,
    Scanner,
    Severity,
    scan,
)

__all__ = ["Finding", "Scan", "Scanner", "Severity", "scan"]
