"""Languages described in a profile: a program, a driver or a Jupyter kernel."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from interpreter import OpenInterpreter
from interpreter.config.profiles.load import load
from interpreter.errors import ProfileError, RuntimeStartError, SettingError
from interpreter.languages.applescript import AppleScript
from interpreter.languages.custom import custom_language
from interpreter.languages.powershell import PowerShell
from interpreter.policy.analysis import analyze
from interpreter.runtimes import built_in_languages
from runtimes.language_samples import STRIKE

PROFILE = """\
custom_languages:
  - name: Upper
    command: tr a-z A-Z
    extension: up
    aliases: [loud]
  - name: Backwards
    command: sh -c 'rev < "$0"' {file}
  - name: Lost
    command: no-such-program {file}
"""


def loaded(tmp_path: Path, text: str) -> OpenInterpreter:
    file = tmp_path / "p.yaml"
    file.write_text(text)
    interpreter = OpenInterpreter()
    load(interpreter, str(file))
    return interpreter


def test_a_profile_adds_languages(tmp_path: Path) -> None:
    interpreter = loaded(tmp_path, PROFILE)
    computer = interpreter.computer
    assert [each.name for each in computer.languages][-3:] == ["Upper", "Backwards", "Lost"]
    assert computer.run("backwards", "abc")[0]["content"].strip() == "cba"
    assert computer.get_language("loud").file_extension == "up"
    assert analyze("upper", "x", ".", registry=computer.registry).unknown
    offered = [each.name for each in computer.runtimes.available()]
    assert "Upper" in offered
    assert "Lost" not in offered
    assert "no-such-program is not installed" in computer.run("lost", "x")[0]["content"]
    computer.terminate()


def test_a_language_is_offered_once_its_program_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    runtimes = loaded(tmp_path, PROFILE).computer.runtimes
    assert "Lost" not in [each.name for each in runtimes.available()]
    (programs / "no-such-program").write_text("#!/bin/sh\n")
    (programs / "no-such-program").chmod(0o755)
    assert "Lost" in [each.name for each in runtimes.available()]


@pytest.mark.parametrize(
    "entry", ["{name: X}", "{command: a}", "{name: X, command: a, kernel: b}", "{name: X, colour: red}"]
)
def test_invalid_language_entries_are_rejected(tmp_path: Path, entry: str) -> None:
    with pytest.raises((ProfileError, SettingError), match="A language takes a name"):
        loaded(tmp_path, f"custom_languages:\n  - {entry}\n")


def test_a_missing_kernel_is_an_error() -> None:
    language = custom_language({"name": "Nope", "kernel": "no-such-kernel"})()
    assert language.version() is None
    with pytest.raises(RuntimeStartError, match="there is no Jupyter kernel no-such-kernel"):
        list(language.run("1"))


def test_every_language_of_0_4_3_is_known() -> None:
    names = {language.name for language in built_in_languages()}
    assert names >= {"Python", "Shell", "JavaScript", "Ruby", "R", "Java", "PowerShell", "AppleScript"}


@pytest.mark.parametrize("name", ["ruby", "java", "typescript", "fish", "powershell", "applescript"])
def test_effects_are_unknown_without_an_analysis(name: str) -> None:
    assert analyze(name, "x = 1", ".").unknown


@pytest.mark.needs("ruby")
def test_undo_restores_a_file_that_a_ruby_block_deleted(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("precious")
    interpreter = OpenInterpreter(workspace=str(tmp_path), auto_run=True)
    interpreter.computer.run("ruby", "File.delete('kept.txt')")
    assert not (tmp_path / "kept.txt").exists()
    interpreter.undo()
    assert (tmp_path / "kept.txt").read_text() == "precious"
    interpreter.computer.terminate()


@pytest.mark.parametrize(("language", "program"), [(PowerShell, "pwsh"), (AppleScript, "osascript")])
def test_code_reaches_a_program_as_a_file(
    language: type[PowerShell], program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These programs are not installed here: a script with the same name shows what they get."""
    stand_in = tmp_path / program
    stand_in.write_text('#!/bin/sh\nfor word; do :; done\necho "$@" | sed "s|/.*/||"; cat "$word"; exit 3\n')
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    runtime = language()
    code = 'say "$HOME" & `id`'
    chunks = list(runtime.run(code))
    runtime.terminate()
    output = "".join(str(chunk["content"]) for chunk in chunks if chunk["format"] == "output")
    assert output.endswith(f"block.{language.file_extension}\n{code}")
    assert (chunks[-1]["ended"], chunks[-1]["exit_code"]) == ("error", 3)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a program waits for")
def test_a_program_that_polls_its_input_gets_an_answer() -> None:
    language = custom_language({"name": "Poll", "command": [sys.executable, "{file}"]})
    interpreter = OpenInterpreter()
    interpreter.computer.languages.append(language)
    interpreter.computer.on_input = lambda prompt, password: "Ada"
    code = "import os, select\npoll = select.epoll()\npoll.register(os.dup(0), select.EPOLLIN)\npoll.poll()\nprint(f'<{input()}>')"
    try:
        assert "<Ada>" in str(interpreter.computer.run("poll", code))
    finally:
        interpreter.computer.terminate()


def test_an_interrupt_that_loses_the_kernels_reply_ends_the_block() -> None:
    language: Any = custom_language({"name": "Kernel", "kernel": "python3"})()
    if language.version() is None:
        pytest.skip("ipykernel is not installed")
    chunks = []
    try:
        for chunk in language.run(STRIKE):
            chunks.append(chunk)
            if chunk.get("content") == "ready\n":
                threading.Thread(target=language.stop).start()
        assert chunks[-1]["ended"] == "interrupted"
        assert any(chunk.get("content") == "True\n" for chunk in language.run("session.send is send"))
    finally:
        language.terminate()
