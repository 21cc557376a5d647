"""From nothing to running code: one command, one choice, one question, and a real model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from interpreter.local_models.weights import models_folder
from real_models import MODELS, weights
from terminal.person import ENTER, someone

pytestmark = [pytest.mark.real_model, pytest.mark.usefixtures("no_strays"), pytest.mark.timeout(600)]

DOWN = "\x1b[B"
TITLE = MODELS["qwen2.5-coder-0.5b"].title


def test_a_new_user_gets_code_running_with_a_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = weights("qwen2.5-coder-0.5b")
    models_folder().mkdir(parents=True)
    (models_folder() / file.name).symlink_to(file)  # as if it had been downloaded
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INTERPRETER_SANDBOX", "off")  # or the second start asks when code may run
    with someone("-y", "--max_blocks", "3", timeout=300) as person:
        person.sees("Your own GGUF file")
        rows = person.emulator.visible
        marked = next(at for at, row in enumerate(rows) if row.startswith("> "))
        person.types(DOWN * (next(at for at, row in enumerate(rows) if TITLE in row) - marked) + ENTER)
        person.says("Use Python to write the word hello into the file hello.txt.")
        person.at_prompt()
        assert os.listdir(tmp_path) == ["hello.txt"]
        assert "hello" in (tmp_path / "hello.txt").read_text().lower()
        assert person.leaves() == 0
    with someone(timeout=300) as person:
        person.sees("Using builtin/qwen2.5-coder-0.5b, your last choice.")
        assert person.leaves() == 0
