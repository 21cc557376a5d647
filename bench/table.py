"""One measurement, and the table that shows them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.subject import ProbeFailure, Subject


@dataclass(frozen=True)
class Measurement:
    """Something to measure, its bare limit, and its budget."""

    what: str
    unit: str
    of: Callable[[Subject], float]
    bare: Callable[[], float] | None = None
    budget: float | None = None
    budget_of_bare: float | None = None
    """The budget as a multiple of the bare limit."""

    def limit(self, bare: float | None) -> float | None:
        if self.budget_of_bare is not None and bare is not None:
            return self.budget_of_bare * bare
        return self.budget


HEADINGS = ("what", "ours", "bare limit", "ours / bare", "budget", "")


def rows(
    measurements: Sequence[Measurement],
    ours: Subject,
    original: Subject | None,
    tell: Callable[[str], None],
) -> list[list[str]]:
    """Measure the rows of the table, one after the other."""
    headings = [*HEADINGS, "0.4.3", "0.4.3 / ours"] if original else [*HEADINGS]
    table = [headings]
    for measurement in measurements:
        tell(measurement.what)
        table.append(_row(measurement, ours, original))
    return table


def _row(measurement: Measurement, ours: Subject, original: Subject | None) -> list[str]:
    bare = measurement.bare() if measurement.bare else None
    value, why = _try(measurement, ours)
    limit = measurement.limit(bare)
    cells = [
        measurement.what,
        why or _number(value, measurement.unit),
        _number(bare, measurement.unit),
        _times(value, bare),
        f"<= {_number(limit, measurement.unit)}" if limit is not None else "-",
        _verdict(value, limit),
    ]
    if original:
        theirs, why = _try(measurement, original)
        cells += [why or _number(theirs, measurement.unit), _times(theirs, value)]
    return cells


def _try(measurement: Measurement, subject: Subject) -> tuple[float | None, str]:
    try:
        return measurement.of(subject), ""
    except ProbeFailure as failure:
        return None, f"({failure})"


def _verdict(value: float | None, limit: float | None) -> str:
    if value is None:
        return "FAILED"
    if limit is None:
        return ""
    if value <= limit:
        return "ok"
    return f"OVER by {value / limit - 1:.0%}" if limit else "OVER"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "s" and value < 0.1:
        value, unit = value * 1000, "ms"
    digits = 0 if value >= 100 or float(value).is_integer() else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}".rstrip()


def _times(value: float | None, base: float | None) -> str:
    if value is None or not base:
        return "-"
    times = value / base
    return f"{times:,.0f}x" if times >= 100 else f"{times:.3g}x"


def layout(table: Sequence[Sequence[str]]) -> str:
    """Format the table as Markdown, with its columns aligned."""
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in table]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])
