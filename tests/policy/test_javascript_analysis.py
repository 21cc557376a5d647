"""What is seen in JavaScript code: the calls that it names."""

from __future__ import annotations

import pytest

from interpreter.policy.analysis import analyze
from policy.seeing import WORKSPACE, seen


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        ("[1, 2].map(x => x * 2)", set()),
        ("const fs = require('fs'); fs.writeFileSync('a.txt', 'x')", {("write", "a.txt")}),
        ("await fs.promises.appendFile(`out/${n}.txt`, s)", {("write", "out/*.txt")}),
        ("fs.rmSync('a', {recursive: true})", {("delete", "a")}),
        ("fs.renameSync('a', 'b')", {("delete", "a"), ("write", "b")}),
        ("// fs.rmSync('a')\n/* fs.rmSync('b') */", set()),
        ("fs.readFileSync('a.json')", {("read", "a.json")}),
        ("await fetch('https://a.example/x')", {("network", "a.example")}),
        ("await fetch(url)", {("network", "network")}),
        ("axios.post('https://a.example/x')", {("network", "a.example")}),
        ("require('child_process').execSync('rm x')", {("delete", "x")}),
        ("spawn('rm', ['x'])", {("delete", "x")}),
        ("process.kill(pid)", {("kill", "a process")}),
        ("/a(b)/.exec('rm x'); const re = /c/; re.exec(s)", set()),
        ("import { readFile } from 'node:fs/promises'", set()),
    ],
)
def test_what_calls_do(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("javascript", code) == effects


@pytest.mark.parametrize(
    "code", ["eval(x)", "new Function(x)", "require(name)", "require('left-pad')", "globalThis['x']()"]
)
def test_what_the_text_does_not_tell_is_not_known(code: str) -> None:
    assert analyze("javascript", code, WORKSPACE).unknown


def test_lines_are_those_of_the_block() -> None:
    found = analyze("js", "let a = 1\n\nfs.unlinkSync('x')", WORKSPACE).of("delete")
    assert [(effect.what, effect.line) for effect in found] == [("x", 3)]


@pytest.mark.parametrize("language", ["ruby", "applescript", "powershell", ""])
def test_other_languages_are_not_known(language: str) -> None:
    assert analyze(language, "puts 1", WORKSPACE).unknown


def test_what_is_only_shown_does_nothing() -> None:
    assert not analyze("markdown", "<script>fetch('https://a.example')</script>", WORKSPACE).all
