"""The recorder keeps the last 64 KB in a file that only its owner can read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pexpect
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.frontends.wtf import recorded_output
from interpreter.frontends.wtf.recorder import (
    MAX_BYTES,
    Recording,
    read_recording,
)

PROGRAM = "import sys; from interpreter.frontends.wtf import main; sys.exit(main())"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, MAX_BYTES + 5000), max_size=8))
def test_the_last_bytes_are_kept_however_they_are_split(lengths: list[int]) -> None:
    recording, whole = Recording(), b""
    for number, length in enumerate(lengths):
        piece = bytes([number % 256]) * length
        recording.add(piece)
        whole += piece
    try:
        assert read_recording(recording.path) == whole[-MAX_BYTES:]
        assert os.stat(recording.path).st_size <= MAX_BYTES
        assert os.stat(recording.path).st_mode & 0o777 == 0o600
    finally:
        recording.close()
    assert read_recording(recording.path) == b""


def test_other_files_are_not_read_as_recordings(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("private")
    assert read_recording(str(tmp_path / "x")) == b""


def marked(output: str, status: int) -> str:
    return f"$ cmd\r\n\x1b]133;C\x07{output}\x1b]133;D;{status}\x07"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (marked("one\r\n", 2) + marked("two\r\n", 0), "one"),
        (marked("one\r\n", 2) + marked("two\r\n", 2), "two"),
        ("tail of a long one\r\n\x1b]133;D;2\x07", "tail of a long one"),
        (marked("other\r\n", 1), ""),
        ("", ""),
    ],
)
def test_the_output_of_the_failed_command_is_found(text: str, found: str) -> None:
    assert recorded_output(text, 2) == found


def test_the_recorded_program_has_a_terminal_of_the_same_size(no_strays: None) -> None:
    inner = "stty size; read line; echo got $line; read again; stty size; kill -TERM $$"
    child = pexpect.spawn(
        sys.executable,
        ["-c", PROGRAM, "--record", "sh", "-c", inner],
        encoding="utf-8",
        timeout=60,
        dimensions=(33, 77),
    )
    child.expect_exact("33 77")
    child.sendline("words")
    child.expect_exact("got words")
    child.setwinsize(20, 50)
    child.sendline("")
    child.expect_exact("20 50")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == (-15) % 256


def test_closing_the_window_ends_the_shell(no_strays: None) -> None:
    child = pexpect.spawn(sys.executable, ["-c", PROGRAM, "--record", "sh", "-c", "echo here; read x"], timeout=60)
    child.expect_exact("here")
    child.close(force=True)


def test_a_missing_program_is_reported() -> None:
    child = pexpect.spawn(sys.executable, ["-c", PROGRAM, "--record", "no-such-shell"], encoding="utf-8", timeout=60)
    child.expect_exact("no-such-shell")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 127
