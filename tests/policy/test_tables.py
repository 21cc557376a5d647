"""The tables of programs and functions are well-formed, and options they don't list have unknown effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.languages import javascript
from interpreter.policy.analysis import analyze
from interpreter.policy.analysis.programs import HANDLERS
from interpreter.policy.analysis.python_calls import KINDS
from interpreter.policy.analysis.tables import calls as listed_calls
from interpreter.policy.analysis.tables import programs, python_calls, python_methods
from policy.analyzed_effects import WORKSPACE, seen

JAVASCRIPT = str(Path(javascript.__file__).with_name("calls.txt"))

OPERANDS = set(
    "nothing read names write edit create delete tree copy move kill get send secret install remove system disk "
    "database start code skip here unknown unpack".split()
)
PLAIN = set(
    "read write edit create rename renamed writegiven delete tree temporary env writearchive readtext fetch unpickled get send sendto reach "
    "kill program shell runall import environment fork fixed expression unknown given link hardlink copied unpack patch".split()
)
OPTIONS = set("read write run target host install also only instead no local unknown".split())


def test_every_program_row_uses_known_words() -> None:
    for name, row in programs().items():
        assert {rule.kind for rule in row.effects} <= OPERANDS, name
        assert {rule.kind for verb in row.verbs.values() for rule in verb} <= OPERANDS, name
        for rule in (rule for rules in row.adds.values() for rule in rules):
            assert rule.kind in OPTIONS, name
            assert rule.kind not in ("also", "only", "instead") or rule.what.split()[0] in OPERANDS, name
        assert all(rule.what in HANDLERS for rule in row.effects if rule.kind == "code"), name


def test_every_call_row_uses_known_effects() -> None:
    calls = [*python_calls().values(), *python_methods().values()]
    assert {does.kind for effects in calls for does in effects} <= set(KINDS) | PLAIN
    known = {
        "read",
        "write",
        "edit",
        "create",
        "rename",
        "renamed",
        "delete",
        "tree",
        "get",
        "send",
        "shell",
        "start",
        "sql",
        "kill",
        "link",
        "copied",
        "unknown",
    }
    assert {does.kind for effects in listed_calls(JAVASCRIPT).values() for does in effects} <= known


@pytest.mark.parametrize(
    "code",
    ["ls --frobnicate", "cat -Q a", "grep --pre=x a b", "rg --pre ./x a", "sort --compress-program=./x a", "rm --x a",
     "cp --x a b", "sed --x p a", "tar --x -tf a", "curl --x https://a.example", "man -P ./x ls", "date -s 12:00",
     "tar -tf a -I ./x", "zip -T a b", "sort -Z a", "tail --x=1 a", "wc -w --x a", "tar tIf ./x a"],
)  # fmt: skip
def test_an_unlisted_option_has_unknown_effects(code: str) -> None:
    assert analyze("shell", code, WORKSPACE).unknown


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        ("uniq a b", {("read", "a"), ("write", "b")}),
        ("split -l 5 a part-", {("read", "a"), ("read", "part-"), ("write", "part-*")}),
        ("tree -L 2 -o list a", {("read", "a"), ("write", "list")}),
        ("grep -f words a", {("read", "words"), ("read", "a")}),
        ("npm install --registry https://r.example x", {("network", "r.example"), ("install", "x"), ("write", "node_modules")}),
        ("docker image prune -f", {("kill", "containers (docker image prune)")}),
        ("pacman -S x", {("install", "x")}),
        ("pacman -Q", set()),
        ("rsync -a -e 'rm x' a b", {("read", "a"), ("write", "b"), ("delete", "x")}),
        *(
            (f"rsync -a {option} a b", {("read", "a"), ("write", "b"), ("delete", "b/*")})
            for option in ("--delete", "--delete-before", "--delete-during", "--delete-after", "--delete-excluded")
        ),
        ("strace -f rm x", {("delete", "x")}),
        ("watch -d rm x", {("delete", "x")}),
    ],
)  # fmt: skip
def test_effects_of_options_and_verbs(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("shell", code) == effects
