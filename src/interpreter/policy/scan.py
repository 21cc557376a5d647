"""Scans of blocks before they run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

Severity = Literal["low", "medium", "high"]

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True)
class Finding:
    """One problem that a scanner reports, and its line in the block; line 0 is the block as a whole."""

    tool: str
    rule: str
    line: int
    severity: Severity
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line else ""
        return f"{where}{self.severity}: {self.message} ({self.tool} {self.rule})"


@dataclass(frozen=True)
class Scan:
    """The combined result of all scanners for one block."""

    findings: list[Finding] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # scanners for its language that are not installed
    tools: list[str] = field(default_factory=list)  # scanners that looked at it
    unseen: bool = False  # it has a part that no scanner understands
    notice: str = ""  # a line for the user about scanners that are missing, once in a session
    cancelled: bool = False

    @property
    def asks(self) -> bool:
        """Return whether approval is needed even in auto mode: a serious finding, or code that was not scanned."""
        return self.unseen or any(finding.severity == "high" for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        return {
            "findings": [asdict(finding) for finding in self.findings],
            "tools": self.tools,
            "missing": self.missing,
            "unseen": self.unseen,
            "notice": self.notice,
            "asks": self.asks,
        }


class BlockScanner(Protocol):
    """Scans blocks in safe mode; `scanners.Scanner` does."""

    def can_scan(self, language: str, code: str) -> bool: ...

    def scan(self, language: str, code: str) -> Scan: ...

    def cancel(self) -> None: ...
