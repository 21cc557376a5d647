"""Static analysis of JavaScript code."""

from __future__ import annotations

import pytest

from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE, seen


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
def test_effects_of_calls(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("javascript", code) == effects


@pytest.mark.parametrize(
    "code", ["eval(x)", "new Function(x)", "require(name)", "require('left-pad')", "globalThis['x']()"]
)
def test_effects_that_cannot_be_analyzed_are_unknown(code: str) -> None:
    assert analyze("javascript", code, WORKSPACE).unknown


def test_line_numbers_refer_to_the_block() -> None:
    found = analyze("js", "let a = 1\n\nfs.unlinkSync('x')", WORKSPACE).of("delete")
    assert [(effect.what, effect.line) for effect in found] == [("x", 3)]


@pytest.mark.parametrize("language", ["ruby", "applescript", "powershell", ""])
def test_effects_in_other_languages_are_unknown(language: str) -> None:
    assert analyze(language, "puts 1", WORKSPACE).unknown


def test_markdown_has_no_effects() -> None:
    assert not analyze("markdown", "<script>fetch('https://a.example')</script>", WORKSPACE).all
