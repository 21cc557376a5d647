"""What a scan found, and what that means for the block."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Severity = Literal["low", "medium", "high"]

SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
NOT_SCANNED = "not-scanned"
"""The rule of a finding that says that a scanner could not look at the block: that is not the same as clean."""
_MOST_TOLD = 20


@dataclass(frozen=True)
class Finding:
    """One thing that a scanner has to say, and about which line of the block; line 0 is the block as a whole."""

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
    """What all scanners together said about one block."""

    findings: list[Finding] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Scanners for its language that are not installed."""
    tools: list[str] = field(default_factory=list)
    """Scanners that looked at it."""
    unseen: bool = False
    """There is something in it that none of them knows."""
    notice: str = ""
    """A line for the user about scanners that are missing, once in a session."""
    cancelled: bool = False

    @property
    def asks(self) -> bool:
        """Whether somebody has to say yes even where code runs unasked: something grave, or nobody has looked."""
        return self.unseen or any(finding.severity == "high" for finding in self.findings)

    def as_data(self) -> dict[str, Any]:
        """As a chunk carries it."""
        facts = {"tools": self.tools, "missing": self.missing, "unseen": self.unseen, "notice": self.notice}
        return {"findings": [asdict(finding) for finding in self.findings], **facts, "asks": self.asks}


def failed(tool: str, why: str) -> Finding:
    """A scanner could not do its work."""
    return Finding(tool, NOT_SCANNED, 0, "high", f"The scan failed, so it says nothing about this code: {why}")


def in_order(findings: list[Finding]) -> list[Finding]:
    """Each once, the gravest first, then by line."""
    return sorted(dict.fromkeys(findings), key=lambda found: (SEVERITIES.index(found.severity), found.line, found.tool))


def told(findings: list[Finding]) -> str:
    """The findings as a list in words, for the model."""
    lines = [f"- {finding}" for finding in findings[:_MOST_TOLD]]
    more = len(findings) - _MOST_TOLD
    return "\n".join([*lines, f"- and {more} more"] if more > 0 else lines)
