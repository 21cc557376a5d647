"""Code that the analysis doesn't model has unknown effects, so a rule that allows reading doesn't allow it."""

from __future__ import annotations

from pathlib import Path

import pytest

from interpreter.policy import Policy, Rule
from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE

READING = Rule("allow", does=("read", "nothing"), path=("{workspace}/**",))
TRICKS = {
    "python": [
        "import pathlib\npathlib.os.remove('/outside')",
        "print.__self__.__import__('os').remove('x')",
        "%timeit __import__('os').remove('x')",
        "import timeit\ntimeit.timeit('import os; os.remove(\"x\")')",
        "import fileinput\nfor line in fileinput.input('a', inplace=True):\n    print(line)",
        "from xmlrpc.client import ServerProxy\nServerProxy('http://example.com').x()",
        "thing.frobnicate()",
        "import os\nos.environ['LD_PRELOAD'] = 'x'",
        "import json\njson.dumps = print",
        "!echo {__import__('os').remove('x')}",
        "%config A.b = __import__('os').remove('x')",
        "list(map(getattr, [1], ['x']))",
        "type(open('a').buffer.raw)('x', 'w')",
        "(x for x in []).gi_frame.f_builtins['open']('x', 'w')",
        "f = p.unlink\nf()",
        "df.to_string('x')",
    ],
    "shell": [
        "rg --pre ./x a", "man -P ./x ls", "LESSOPEN='|./x' less a", "export LESSOPEN='|./x'; less a",
        "sort --compress-program=./x a", "git grep --open-files-in-pager=./x a", "git grep -O./x a", "tar -tf a -F ./x",
        "dc -e '!touch x'", "sqlite3 a.db \"select writefile('x', 'y')\"", "uniq a OUT", "strace -o OUT ls", "less '+!x' a",
        "PAGER=./x git log", "GIT_EXTERNAL_DIFF=./x git diff", "BASH_ENV=./x bash -c ls", "PYTHONSTARTUP=x python3 -c 1",
        "env ANYTHING=x ls", "command export PATH=.", "declare -n r=PATH; r=.", "cd /etc && ls", "cd /etc; rg x",
        "awk '{print > $1}' a", "sed 's,a,b,w x' a", "sed '1e x' a", "find . -frobnicate", '[ -v "a[$x]" ]', "[[ a[$x] -eq 1 ]]", "python3 -m timeit 'open(\"x\", \"w\")'",
    ],
    "javascript": [
        "const {execSync:e}=require('child_process'); e('rm x')",
        "// a note\u2028require('fs').rmSync('x')",
        "// a note\u2029require('fs').rmSync('x')",
        "/[/*]/.test(a); require('fs').rmSync('x'); /[*/]/",
        "if (a) /b //require('fs').rmSync('x')\n1",
        "`${require('fs').rmSync('x')}`",
        "frobnicate(1)",
        "a[b](c)",
        "const f = x[key]; f()",
        "let f; f = x[a + b][c]; f(code)()",
        "const {[key]: f} = x; p.then(f)",
        "p.then(x[k][k]).then(x => x.length)",
        "['a'].map(x[k])",
        "[x[k]].map(f => f('a'))",
        "for (const f of [x[k]]) f('a')",
        "function f() {}; [f] = [x[k]]; f('a')",
        "function call(f) { return f('a') }; call(x[k])",
        "const o = {}; o.map = x[k]; o.map('a')",
        "const o = {map: x[k]}; o.map('a')",
        "const C = x[k]; new C('a')",
        "class C extends x[k] {}; new C('a')",
        "const f = x[k]; f`a`",
        "const f = x[k]; console.log(2 * f('a'))",
        "console.log(x[k]); new Promise(f)",
        "(() => 1, f)('a')",
        "let f; if (f = x[k]) f('a')",
        "(function () {} && f)('a')",
        "x[k]`a`",
        "setTimeout(''[k][k], 1)",
        "'a'.replace(/a/, x[k])",
        "['a'].map(function () {}[k])",
        "fs.readFileSync('a', {b: [" + "1, " * 100 + "], flag: 'w'})",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("language", "code"), [(language, code) for language in TRICKS for code in TRICKS[language]])
def test_a_reading_rule_does_not_allow_tricks(language: str, code: str) -> None:
    assert Policy(WORKSPACE, (READING,)).judge(language, code).decision == "ask"


def test_names_imported_in_an_earlier_block_are_known() -> None:
    first = analyze("python", "import os as o\nfrom os import remove as r", WORKSPACE)
    later = analyze("python", "o.remove('x')\nr('y')", WORKSPACE, known=first.defines)
    assert [effect.what for effect in later.of("delete")] == ["x", "y"]


def test_a_shell_function_hides_the_program_with_its_name() -> None:
    first = analyze("shell", "ls() { rm -rf x; }", WORKSPACE)
    assert analyze("shell", "ls", WORKSPACE, known=first.defines).unknown
    assert not analyze("shell", "ls", WORKSPACE).unknown


def test_a_workspace_file_hides_the_module_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("")
    assert analyze("python", "import json", tmp_path).unknown
    assert not analyze("python", "import csv", tmp_path).unknown


def test_calling_a_value_looked_up_in_an_earlier_block_is_unknown() -> None:
    first = analyze("javascript", "const f = x[key]", WORKSPACE)
    assert not first.unknown
    assert analyze("javascript", "['a'].map(f)", WORKSPACE, known=first.defines).unknown
    assert analyze("javascript", "list.map(f => f('a'))", WORKSPACE, known=first.defines).unknown
    assert not analyze("javascript", "list.map(x => x.length)", WORKSPACE, known=first.defines).unknown


@pytest.mark.parametrize(
    "code",
    [
        "for (let i = 0; i < rows.length; i++) { const row = rows[i]; console.log(row.name, data[key].length) }",
        "totals[key] += x; const list = groups[key] || []; list.push(Math.max(...values[key]))",
        "const by = r => r[key]; console.log(rows.map(by), rows.map(Number), rows.map(Math.abs), by(rows[i]))",
        "function value(row) { return row[key] }\nif (value(rows[i])) { rows.sort((a, b) => value(a) - value(b)) }",
        "const stats = keys.map(k => ({ key: k, max: Math.max(...groups[k]), label: labels[k] }))",
        "await new Promise(resolve => setTimeout(resolve, 10)); console.log(rows[i])",
        "new Promise((resolve, reject) => { resolve(rows[i]) }).then(async row => JSON.stringify(row, null, 2))",
        "(async () => { console.log(rows[i]) })(); (function () { return 1 })(); (x => x * 2)(4)",
        "function group(rows, key) { const groups = {}; for (const row of rows) { const k = key(row); "
        "if (!groups[k]) groups[k] = []; groups[k].push(row) } return groups }",
        "function sort(list) { return list[i] }; sort([3, 1, 2])",
        "const swap = (a, i, j) => { [a[i], a[j]] = [a[j], a[i]] }; swap(rows, 0, 1)",
        "class Stack { pop() { return this.items[this.n] } }\nconst s = new Stack(); s.pop()",
    ],
)
def test_looking_values_up_is_harmless(code: str) -> None:
    assert not analyze("javascript", code, WORKSPACE).unknown
