"""Print the compatibility table: the same scripts on 0.4.3 and on ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.__main__ import original

from compat.table import (
    ORIGINAL_LIMIT,
    ORIGINAL_RESULTS,
    OUR_LIMIT,
    Result,
    Row,
    all_rows,
    exceptions,
    original_results,
    record,
    run_rows,
)

SOURCE = Path(__file__).parent.parent / "src"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m compat", description=__doc__)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--ours", action="store_true", help="leave 0.4.3 out")
    parser.add_argument(
        "--record",
        action="store_true",
        help="run 0.4.3 on new and changed rows (with --only, on these), and record the results",
    )
    parser.add_argument("--output", action="store_true", help="show the output of failing rows")
    options = parser.parse_args()
    rows = [row for row in all_rows() if options.only in row.name]
    if options.record and not options.only and ORIGINAL_RESULTS.exists():
        known = original_results()
        rows = [row for row in rows if known.get(row.name, {}).get("digest") != row.digest]
    theirs: list[Result] = []
    ours: list[Result] = []
    with ThreadPoolExecutor() as pool:  # both at once
        if not options.ours:
            of_theirs = pool.submit(_run, "0.4.3", original().python, rows, ORIGINAL_LIMIT, None, keep=options.record)
        if not options.record:
            ours = _run("ours", Path(sys.executable), rows, OUR_LIMIT, SOURCE)
        if not options.ours:
            theirs = of_theirs.result()
    print(_table(rows, theirs, ours))
    if options.output:
        for result in [*theirs, *ours]:
            if not result.passes:
                print(f"\n--- {result.name}\n{result.output}")
    missing = [one.name for one in ours if not one.passes and one.name not in exceptions()]
    if theirs:
        expected = {result.name for result in theirs if result.passes}
        missing = [name for name in missing if name in expected]
    return 1 if missing else 0


def _run(
    who: str, python: Path, rows: Sequence[Row], limit: float, source: Path | None, keep: bool = False
) -> list[Result]:
    results = []
    for row, result in zip(rows, run_rows(python, rows, limit, source), strict=True):
        results.append(result)
        if keep:
            record(row, result)
        if sys.stderr.isatty():
            print(f"\r\x1b[K{who} {len(results)}/{len(rows)} {result.name[:90]}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return results


def _table(rows: Sequence[Row], theirs: Sequence[Result], ours: Sequence[Result]) -> str:
    """Write the rows by section with both results, then the failures, then a summary per section."""
    sides = {
        name: {one.name: one for one in results} for name, results in (("0.4.3", theirs), ("ours", ours)) if results
    }
    allowed = exceptions()
    lines = ["| row | " + " | ".join(sides) + " |", "|---|" + "---|" * len(sides)]
    failures = []
    for row in rows:
        cells = []
        for side, results in sides.items():
            result = results[row.name]
            different = side == "ours" and row.name in allowed and not result.passes
            cells.append("yes" if result.passes else "differs" if different else "no")
            if not result.passes:
                failures.append(f"{side:6}{row.name}\n      {allowed[row.name] if different else result.why}")
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    lines += ["", *failures, "", "| section | rows | " + " | ".join(sides) + " |", "|---|---|" + "---|" * len(sides)]
    sections = list(dict.fromkeys(row.section for row in rows))
    for section in [*sections, "all"]:
        of_section = [row for row in rows if section in (row.section, "all")]
        passed = [str(sum(results[row.name].passes for row in of_section)) for results in sides.values()]
        lines.append(f"| {section} | {len(of_section)} | " + " | ".join(passed) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
