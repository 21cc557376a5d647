"""Scripts written for 0.4.3 run here: our half of the table printed by `make compat`."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))  # for the packages next to src: compat, bench

from compat.table import OUR_LIMIT, all_rows, exceptions, original_results, run_rows  # noqa: E402

ROWS = all_rows()
ORIGINAL = original_results()

# Rows that don't pass yet. Remove a row once it passes.
PENDING: set[str] = set()


SECTIONS = sorted({row.section for row in ROWS})
# Their rows start programs and runtimes: `make test` runs every sixth, `make test-full` all.
COSTLY = {
    *("computer_api", "flags", "hooks", "languages", "magics", "messages_and_history", "profiles", "public_patterns"),
    *("providers", "scripts", "server", "streams"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="rows run in forked processes")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("section", "step"),
    [
        *(pytest.param(section, 6 if section in COSTLY else 1, id=section) for section in SECTIONS),
        *(pytest.param(section, 1, id=f"{section}-all", marks=pytest.mark.full) for section in sorted(COSTLY)),
    ],
)
def test_ours_passes_every_row_that_the_original_passes(section: str, step: int) -> None:
    rows = [row for row in ROWS if row.section == section][::step]
    results = {result.name: result for result in run_rows(Path(sys.executable), rows, OUR_LIMIT, ROOT / "src")}
    assert list(results) == [row.name for row in rows]
    allowed = PENDING | exceptions().keys()
    failing = {name for name, result in results.items() if not result.passes}
    reports = [f"{name}: {results[name].why}\n{results[name].output}" for name in sorted(failing - allowed)]
    assert not reports, "\n\n".join(reports)
    assert not results.keys() & allowed - failing, "these pass now: remove them from the list"


def test_the_table_is_large_and_row_names_are_unique() -> None:
    assert len(ROWS) >= 150
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []


def test_the_originals_result_is_recorded_for_every_row() -> None:
    stale = [row.name for row in ROWS if ORIGINAL.get(row.name, {}).get("digest") != row.digest]
    assert stale == [], "run `python -m compat --record`"
    assert ORIGINAL.keys() == {row.name for row in ROWS}


def test_every_exception_has_a_documented_reason() -> None:
    page = _words((ROOT / "docs" / "migrating.md").read_text(encoding="utf-8"))
    for name, reason in exceptions().items():
        assert name in ORIGINAL and "fails" not in ORIGINAL[name], name
        assert _words(reason) in page, f"docs/migrating.md does not say: {reason}"


def test_the_programs_and_extras_of_the_original_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"interpreter", "i", "interpreter-classic", "wtf"} <= project["scripts"].keys()
    assert {"os", "safe", "local", "server"} <= project["optional-dependencies"].keys()


def _words(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
