"""JavaScript blocks: state, results and modules."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from interpreter.errors import RuntimeStartError
from javascript_runtimes import JavaScriptRuntime, fresh, session

__all__ = ["fresh", "session"]
pytestmark = pytest.mark.needs("node")


@pytest.fixture
def folder(session: JavaScriptRuntime, tmp_path: Path) -> Path:
    """An empty folder, which is the working directory of the session."""
    session.context.cwd = str(tmp_path)
    return tmp_path


def test_declarations_stay_and_can_be_repeated(session: JavaScriptRuntime) -> None:
    code = "let a = {n}\nconst b = {n}\nvar c = {n}\nclass D {{ n = {n} }}\nfunction f() {{ return {n} }}"
    for n in (1, 2):
        assert session.do(code.format(n=n)).ended == "done"
        assert session.do("[a, b, c, new D().n, f()].join()").stdout == f"'{n},{n},{n},{n},{n}'\n"


def test_functions_with_blank_lines_and_comments(session: JavaScriptRuntime) -> None:
    session.do("/** Doubles. */\nfunction double(x) {\n\n  // twice\n\n  return 2 * x;\n}\n")
    assert session.do("double(4)").stdout == "8\n"
    assert "// twice" in session.do("double.toString()").stdout


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("1 + 1", "2\n"),
        ("'text'", "'text'\n"),
        ("undefined", ""),
        ("let unused = 1", ""),
        ("null", "null\n"),
        ("-0", "-0\n"),
        ("10n ** 20n", "100000000000000000000n\n"),
        ("Symbol('s')", "Symbol(s)\n"),
        ("({a: [1, {b: new Map([[1, 2]])}]})", "{ a: [ 1, { b: [Map] } ] }\n"),
        ("(x) => x", "[Function (anonymous)]\n"),
        ("if (true) { 5 }", "5\n"),
        ("1 // comment", "1\n"),
        ("", ""),
        ("// nothing", ""),
        ("await 7", "7\n"),
        ("await new Promise((resolve) => setTimeout(resolve, 5, 'later'))", "'later'\n"),
        ("const awaited = await Promise.all([1, 2]); awaited", "[ 1, 2 ]\n"),
        ("for await (const one of [Promise.resolve(1)]) console.log(one)", "1\n"),
        ("async function main() { await null; console.log('ran') }\nmain()", "ran\n"),
        ("Promise.resolve(8)", "8\n"),
        ("if (require.main === module) console.log('a script')", "a script\n"),
        (
            "[typeof fs.readFileSync, typeof path.join, typeof os.cpus].join()",
            "'function,function,function'\n",
        ),
        ("this === globalThis", "true\n"),
        ("setTimeout(() => {}, 1)", ""),
    ],
)
def test_the_last_expression_is_shown(session: JavaScriptRuntime, code: str, shown: str) -> None:
    ran = session.do(code)
    assert (ran.text, ran.ended, ran.exit_code) == (shown, "done", 0)


def test_require_finds_files_and_packages(session: JavaScriptRuntime, folder: Path) -> None:
    (folder / "mine.js").write_text("module.exports = {name: __filename}")
    package = folder / "node_modules" / "thing"
    package.mkdir(parents=True)
    (package / "index.js").write_text("exports.name = 'thing'")
    assert session.do("const { name } = require('./mine'); name").stdout == f"'{folder / 'mine.js'}'\n"
    assert session.do("require('thing').name").stdout == "'thing'\n"
    assert session.do("require('os').EOL").stdout == "'\\n'\n"
    assert "Cannot find module 'nothing'" in session.do("require('nothing')").stderr


def write_modules(folder: Path) -> None:
    (folder / "mine.mjs").write_text("export const name = 'mine'; export default 5")
    package = folder / "node_modules" / "modern"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "modern", "exports": {"import": "./main.mjs"}}))
    (package / "main.mjs").write_text("export const name = 'modern'; export default () => 6")


def test_dynamic_import(session: JavaScriptRuntime, folder: Path) -> None:
    write_modules(folder)
    assert session.do("(await import('./mine.mjs')).name").stdout == "'mine'\n"
    assert session.do("(await import('modern')).default()").stdout == "6\n"
    assert session.do("import('node:path').then((path) => path.sep)").stdout == "'/'\n"
    session.do("const later = () => import ( 'modern' )")
    assert session.do("(await later()).name").stdout == "'modern'\n"


def test_import_statements(session: JavaScriptRuntime, folder: Path) -> None:
    write_modules(folder)
    code = "import five, { name as n } from './mine.mjs';\nimport * as modern from \"modern\"\nimport {\n  join,\n  sep,\n} from 'path'; import 'fs'\n"
    assert session.do(code + "[five, n, modern.name, join('a', sep)]").stdout == "[ 5, 'mine', 'modern', 'a/' ]\n"
    ran = session.do(code + "throw new Error('line 7')")
    assert "block-" in ran.stderr
    assert ".js:7:7" in ran.stderr


@pytest.mark.parametrize(
    "code",
    [
        "const s = `\nimport a from 'b'\nimport('c')`; s",
        "/* import('c') */ const s = \"import('c')\" + /import('c')/.source; s",
        "const o = { import(x) { return x } }; o.import(`import d from 'e'`) // import('c')",
    ],
)
def test_text_that_looks_like_an_import_is_unchanged(session: JavaScriptRuntime, code: str) -> None:
    ran = session.do(code)
    assert ran.ended == "done", ran.stderr
    assert "import" in ran.stdout


def test_the_working_directory_is_shared(session: JavaScriptRuntime, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "here.js").write_text("module.exports = 'found'")
    session.context.cwd = str(tmp_path)
    assert session.do("process.cwd() === __dirname && process.cwd()").stdout == f"'{tmp_path}'\n"
    session.do("process.chdir('other')")
    assert session.context.cwd == str(tmp_path / "other")
    assert session.do("require('./here')").stdout == "'found'\n"


def test_the_session_can_leave_a_deleted_working_directory(session: JavaScriptRuntime, tmp_path: Path) -> None:
    session.do(f"process.chdir('{tmp_path}'); fs.mkdirSync('gone'); process.chdir('gone'); fs.rmdirSync('../gone')")
    session.context.cwd = str(tmp_path)
    assert session.do("process.cwd()").stdout == f"'{tmp_path}'\n"


def test_exported_variables_are_seen(session: JavaScriptRuntime) -> None:
    session.context.exported["COLOUR"] = "blue"
    assert session.do("process.env.COLOUR").stdout == "'blue'\n"
    session.context.exported["COLOUR"] = None
    assert session.do("process.env.COLOUR").stdout == ""


def test_process_argv_is_that_of_a_console(session: JavaScriptRuntime) -> None:
    assert session.do("process.argv.length").stdout == "1\n"


def test_the_driver_reports_its_version(session: JavaScriptRuntime) -> None:
    version = session.do("process.versions.node").stdout.strip().strip("'")
    assert session.runtime is not None
    assert session.runtime.ready is not None
    assert session.runtime.ready["version"] == version


def test_the_active_line_is_reported(session: JavaScriptRuntime) -> None:
    assert session.do("1").lines == [1]
    session.context.active_lines = False
    try:
        assert session.do("1").lines == []
    finally:
        session.context.active_lines = True


def test_many_blocks_leave_nothing_behind(session: JavaScriptRuntime) -> None:
    """Neither file descriptors, in the host or in Node, nor files or memory."""
    measure = "gc(); [fs.readdirSync('/proc/self/fd').length, process.memoryUsage().heapUsed]"
    session.do("require('v8').setFlagsFromString('--expose-gc'); globalThis.gc = require('vm').runInNewContext('gc')")
    for _ in range(20):
        session.do("let big = new Array(1e5).fill(1); big")
    assert session.runtime is not None
    before = json.loads(session.do(measure).stdout), len(os.listdir("/proc/self/fd"))
    for _ in range(100):
        session.do("let big = new Array(1e5).fill(1); big")
    after = json.loads(session.do(measure).stdout), len(os.listdir("/proc/self/fd"))
    assert after[0][0] < before[0][0] + 20
    assert after[1] < before[1] + 20
    assert after[0][1] < before[0][1] + 5e6
    assert len(list(session.runtime.folder.iterdir())) <= 2


def test_missing_node_is_an_error_with_an_install_command(fresh: JavaScriptRuntime) -> None:
    fresh.context.exported["PATH"] = "/nowhere"
    with pytest.raises(RuntimeStartError, match=r"apt-get install nodejs"):
        fresh.do("1")


def test_very_long_code_runs(fresh: JavaScriptRuntime) -> None:
    for size in (300_000, 3_000_000):
        assert fresh.do(f"const long = '{'x' * size}'; long.length").stdout == f"{size}\n"
