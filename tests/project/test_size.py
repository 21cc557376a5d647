"""`make check` prints the size of the code and fails when it exceeds the budget."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import check_size  # noqa: E402  (a script, not a package)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "src" / "interpreter"
    (package / "llm").mkdir(parents=True)
    (package / "__init__.py").write_text("from interpreter.llm.http import get\n")
    (package / "llm" / "__init__.py").write_text("")
    (package / "llm" / "http.py").write_text("def get():\n    return 1\n")
    (package / "llm" / "chat.py").write_text("from interpreter.llm import http\nfrom interpreter.llm.http import get\n")
    monkeypatch.setattr(check_size, "ROOT", tmp_path)
    monkeypatch.setattr(check_size, "BUDGET", tmp_path / "size-budget.toml")
    return tmp_path


def test_statements_and_single_importers_are_counted(project: Path) -> None:
    whole, packages = check_size.measure(project / "src")
    assert (whole.files, whole.statements, whole.one_importer) == (4, 5, 1)
    assert packages["llm"].statements == 4


@pytest.mark.parametrize(("statements", "fails"), [(5, False), (4, True)])
def test_growth_past_the_budget_fails(
    project: Path, capsys: pytest.CaptureFixture[str], statements: int, fails: bool
) -> None:
    check_size.BUDGET.write_text(f"statements = {statements}\none_importer = 1\n")
    assert check_size.main() == fails
    printed = capsys.readouterr().out
    assert printed.startswith("4 files, 5 lines, 5 statements, 1 modules with one importer")
    assert ("statements: 5, the budget is 4" in printed) == fails
