"""Exported variables are parsed from the shell's own notation, and only changes are reported."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.runtimes.shell.dialect import ShellDialect, exported
from shell_runtimes import ShellRuntime, fresh

__all__ = ["fresh"]

VALUES = st.binary(max_size=12).map(lambda value: value.replace(b"\0", b"")) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12
).map(str.encode)
TRICKY = ["", " ", "a b", "'", '"', "\\", "$x", "`x`", "a\nb", "\t\r\x1b\x7f", "é😀", "declare -x A=1", "()", "{ :; }"]
TRICKY += [
    ")",
    "#",
    "!",
    "~",
    "*",
    "a=b",
    "$'x'",
    '\\"',
    "\\$",
    "x" * 70000,
    "\udcff\udcfe",
    "\x01\x80",
    "-x",
    "(",
    "\\\n",
]


def listing(env: dict[bytes, bytes]) -> bytes:
    bash = shutil.which("bash") or "bash"
    argv = [bash, "--norc", "--noprofile", "-c", "declare -p"]
    return subprocess.run(argv, env=env, capture_output=True, check=True).stdout


@given(values=st.lists(VALUES, min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_random_values_are_parsed_exactly(values: list[bytes]) -> None:
    env = {b"V%d" % n: value for n, value in enumerate(values)}
    found = exported(listing(env))
    assert {name: os.fsencode(found[os.fsdecode(name)]) for name in env} == env


def test_tricky_values_are_exported_exactly(fresh: ShellRuntime) -> None:
    values = {f"V{n}": value for n, value in enumerate(TRICKY)}
    fresh.do("true")
    fresh.context.exported |= values
    fresh.do("\n".join(f'export W{n}="$V{n}"; unset V{n}' for n in range(len(TRICKY))))
    known = fresh.context.exported
    assert [known[f"W{n}"] for n in range(len(TRICKY))] == TRICKY
    assert {known[f"V{n}"] for n in range(len(TRICKY))} == {None}
    fresh.do("exit 1")
    fresh.do("true")
    assert [known[f"W{n}"] for n in range(len(TRICKY))] == TRICKY


def test_unexported_variables_and_arrays_are_left_out() -> None:
    report = b'declare -- A="1"\ndeclare -ax B=([0]="x" [1]="y z")\ndeclare -x C\ndeclare -rx D="4"\ndeclare -i E="5"\n'
    assert exported(report) == {"D": "4"}


def test_duplicate_entries_count_once() -> None:
    assert exported(b"\0A=1\0A=1\0\0B=x=y\0") == {"A": "1", "B": "x=y"}


def test_only_changes_are_reported(tmp_path: Path) -> None:
    shell = ShellDialect("bash", {"KEPT": "1", "GONE": "2", "PWD": "/", "OTHER": "x", "TERM": "dumb"})
    assert shell.changes(tmp_path, {}) == {}
    report = b'/new\n\0declare -x KEPT="1"\ndeclare -x OTHER="y"\ndeclare -x NEW="3"\ndeclare -x PWD="/new"\n'
    changes = {"GONE": None, "OTHER": "y", "NEW": "3"}
    (tmp_path / "exports").write_bytes(report)
    assert shell.changes(tmp_path, {}) == {"cwd": "/new", "env": changes}
    assert shell.changes(tmp_path, changes) == {"cwd": "/new", "env": {}}
    known = {**changes, "TOLD": "x", "NEW": "4"}
    assert shell.changes(tmp_path, known) == {"cwd": "/new", "env": {"TOLD": None, "NEW": "3"}}


def test_exports_and_the_directory_are_shared_with_the_session(fresh: ShellRuntime, tmp_path: Path) -> None:
    folder = tmp_path / "a 'b' \"c\" $d\nend"
    folder.mkdir()
    fresh.do("export FRUIT='pear tree' NUMBER=1 LIST=$'a\\nb'; hidden=1")
    assert fresh.context.exported == {"FRUIT": "pear tree", "NUMBER": "1", "LIST": "a\nb"}
    fresh.context.cwd = str(folder)
    assert fresh.do("pwd").text == f"{folder}\n"
    fresh.do("unset FRUIT; export NUMBER=2; cd ..")
    assert fresh.context.exported == {"FRUIT": None, "NUMBER": "2", "LIST": "a\nb"}
    assert fresh.context.cwd == str(tmp_path)


def test_changes_from_other_languages_arrive_before_the_block(fresh: ShellRuntime, tmp_path: Path) -> None:
    fresh.do("true")
    fresh.context.exported |= {"TOLD": 'it\'s "this"\n$x', "HOME": None}
    fresh.context.cwd = str(tmp_path)
    ran = fresh.do('echo "$TOLD|${HOME-none}"; pwd')
    assert ran.text == f'it\'s "this"\n$x|none\n{tmp_path}\n'


def test_a_deleted_working_directory_does_no_harm(fresh: ShellRuntime, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    fresh.do(f"cd {tmp_path}/here")
    (tmp_path / "here").rmdir()
    fresh.do("true")
    fresh.do("exit 1")
    assert fresh.do("cd ..; cd /; pwd").text.endswith("/\n")
