"""Print the table of budgets: `make bench`; `make bench-original` adds the original."""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
from functools import partial

from bench import agents, batch, blocks, files, replies, screen, server, sessions, start
from bench.subject import OURS, ROOT, Subject
from bench.table import layout, rows

ORIGINAL = "open-interpreter[server]==0.4.3"
# 0.4.3 imports pkg_resources, which newer versions of setuptools don't have.
ORIGINAL_NEEDS = "setuptools<80"


def original() -> Subject:
    """Install the original in a separate virtual environment, once."""
    folder = ROOT / ".bench" / "original"
    if not (folder / "bin" / "interpreter").exists():
        print(f"Installing {ORIGINAL} into {folder.relative_to(ROOT)}: some minutes", file=sys.stderr)
        start.new_environment("original", ORIGINAL, ORIGINAL_NEEDS)
    return Subject("0.4.3", folder / "bin" / "python")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--original", action="store_true", help="measure 0.4.3 as well, installing it once")
    parser.add_argument("--install", action="store_true", help="also install the core afresh; slow")
    parser.add_argument("--full", action="store_true", help="also many sessions, and @playwright/mcp; slow")
    parser.add_argument("--only", default="", help="only measurements whose name contains this")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Ended."))  # so that temporary folders are removed
    parts = (start, blocks, replies, sessions, files, screen, server, batch, agents)
    measurements = [each for part in parts for each in part.MEASUREMENTS]
    if options.install or options.original:
        measurements = start.INSTALL + measurements
    if options.full:
        from bench import browser_tasks  # it loads the tests

        measurements = measurements + blocks.MANY + server.MANY + browser_tasks.MEASUREMENTS
    chosen = [each for each in measurements if options.only in each.what]
    table = rows(chosen, OURS, original() if options.original else None, partial(print, file=sys.stderr))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"\n{machine}; best of several runs\n")
    print(layout(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
