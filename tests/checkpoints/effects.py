"""Random effects on files, variables and shells, as Python and shell code."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

NAMES = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "repo", "repo/a", "sp ace", "ü"]
GIT_WORDS = [
    "init",
    "add -A",
    "commit -q --allow-empty -m words",
    "checkout -q -b other",
    "checkout -q main",
    "stash -u",
]
VALUES = [
    "1",
    "'words'",
    "[1, 2]",
    "{'k': [1]}",
    "{1, 2}",
    "b'\\x00'",
    "None",
    "1.5",
    "(1, 'a')",
    "lambda: 1",
    "range(3)",
]
CHANGES = [
    "x += 1",
    "x.append(3)",
    "x['k'] = 2",
    "del x",
    "x, y = y, x",
    "y = [x, x]",
    "class K:\n    z = 1\nx = K",
    "import math; y = math",
    "def f():\n    return 1",
]
SHELL_STATE = [
    "v=1",
    "v='two words'",
    "unset v w",
    "w=(1 2 3)",
    "w+=(4)",
    "export E=$RANDOM_WORD",
    "export E='x y'",
    "unset E",
    "f() { echo one; }",
    "f() { echo two; }",
    "unset -f f",
    "alias l='ls -l'",
    "unalias -a",
    'cd "$ROOT/d" 2>/dev/null || true',
    'cd "$ROOT"',
    "cd /",
    "set -o noglob",
    "set +o noglob",
    "shopt -s nullglob",
]

paths = st.sampled_from(NAMES)
texts = st.sampled_from(["", "1", "one\ntwo\n", "x" * 3000])
file_effects = st.one_of(
    st.tuples(st.sampled_from(["write", "append"]), paths, texts),
    st.tuples(st.just("truncate"), paths, st.just("2")),
    st.tuples(st.just("chmod"), paths, st.sampled_from(["600", "755", "444"])),
    st.tuples(st.sampled_from(["rename", "symlink"]), paths, paths),
    st.tuples(st.sampled_from(["delete", "mkdir", "rmdir"]), paths, st.just("")),
    st.tuples(st.just("git"), st.just("repo"), st.sampled_from(GIT_WORDS)),
)
python_state = st.tuples(
    st.just("code"),
    st.one_of(st.sampled_from(CHANGES), st.tuples(st.sampled_from("xy"), st.sampled_from(VALUES)).map(" = ".join)),
    st.just(""),
)
shell_state = st.tuples(st.just("code"), st.sampled_from(SHELL_STATE), st.just(""))
Effect = tuple[str, str, str]
blocks = st.one_of(
    st.tuples(st.just("python"), st.lists(st.one_of(file_effects, python_state), min_size=1, max_size=5)),
    st.tuples(st.just("shell"), st.lists(st.one_of(file_effects, shell_state), min_size=1, max_size=5)),
)

PYTHON: dict[str, Callable[[Any, Any], str]] = {
    "write": lambda path, data: f"open({path}, 'w').write({data!r})",
    "append": lambda path, data: f"open({path}, 'a').write({data!r})",
    "truncate": lambda path, size: f"os.truncate({path}, {size})",
    "chmod": lambda path, mode: f"os.chmod({path}, 0o{mode} | (0o500 if os.path.isdir({path}) else 0))",
    "rename": lambda path, other: f"os.rename({path}, {_joined(other)})",
    "symlink": lambda path, other: f"os.symlink({other!r}, {path})",
    "delete": lambda path, _: (
        f"shutil.rmtree({path}) if os.path.isdir({path}) and not os.path.islink({path}) else os.remove({path})"
    ),
    "mkdir": lambda path, _: f"os.makedirs({path})",
    "rmdir": lambda path, _: f"os.rmdir({path})",
    "git": lambda path, words: (
        f"subprocess.run(['git', '-C', {path}, *{words.split()!r}], capture_output=True) if os.path.isdir({path}) else None"
    ),
    "code": lambda code, _: code,
}
SHELL: dict[str, Callable[[Any, Any], str]] = {
    "write": lambda path, data: f"printf %s {shlex.quote(data)} > {path}",
    "append": lambda path, data: f"printf %s {shlex.quote(data)} >> {path}",
    "truncate": lambda path, size: f"truncate -c -s {size} {path}",
    "chmod": lambda path, mode: f"chmod {mode} {path}; [ ! -d {path} ] || chmod u+rx {path}",
    "rename": lambda path, other: f"mv -T {path} {_quoted(other)}",
    "symlink": lambda path, other: f"ln -s -T {shlex.quote(other)} {path}",
    "delete": lambda path, _: f"rm -rf {path}",
    "mkdir": lambda path, _: f"mkdir -p {path}",
    "rmdir": lambda path, _: f"rmdir {path}",
    "git": lambda path, words: f"[ ! -d {path} ] || git -C {path} {words}",
    "code": lambda code, _: code,
}
PREPARE = {"python": "import os, shutil, subprocess\nROOT = os.getcwd()\nx, y = 0, [0]", "shell": "ROOT=$PWD"}


def code_of(language: str, effects: list[Effect]) -> str:
    """Write the code of a block with these effects; effects that fail are skipped."""
    return "\n".join(_python(*each) if language == "python" else _shell(*each) for each in effects)


def _python(name: str, what: str, extra: str) -> str:
    line = PYTHON[name](what if name == "code" else _joined(what), extra)
    body = "\n    ".join(line.split("\n"))
    return f"try:\n    {body}\nexcept Exception:\n    pass"


def _shell(name: str, what: str, extra: str) -> str:
    if name == "code":
        return what
    return f"{{ {SHELL[name](_quoted(what), extra)}; }} 2>/dev/null >/dev/null || true"


def _joined(path: str) -> str:
    return f"os.path.join(ROOT, {path!r})"


def _quoted(path: str) -> str:
    return f'"${{ROOT:-/dev/null}}/{path}"'  # touches nothing if the block that set ROOT was undone
