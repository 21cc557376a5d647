"""JavaScript errors: short, with the right lines. The session survives the end of its process."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from javascript_runtimes import JavaScriptRuntime, fresh, session
from sampling import some

__all__ = ["fresh", "session"]
pytestmark = pytest.mark.needs("node")


def test_stack_traces_show_only_the_programs_frames(session: JavaScriptRuntime) -> None:
    ran = session.do("function inner() {\n  throw new TypeError('bad')\n}\n\nfunction outer() { inner() }\nouter()")
    name = re.findall(r"at inner \((block-\d+\.js)", ran.stderr)[0]
    assert ran.stderr == (
        f"Uncaught TypeError: bad\n    at inner ({name}:2:9)\n    at outer ({name}:5:20)\n    at {name}:6:1\n"
    )
    assert (ran.ended, ran.exit_code, ran.stdout) == ("error", 1, "")


def test_frames_of_earlier_blocks_keep_their_name(session: JavaScriptRuntime) -> None:
    session.do("\n\nfunction risky() { return nothing.here }")
    stderr = session.do("await null\nrisky()").stderr
    [number] = re.findall(r"at risky \(block-(\d+)\.js:3:20\)", stderr)
    assert f"block-{int(number) + 1}.js:2:1" in stderr


def test_node_errors_hide_internal_frames(session: JavaScriptRuntime) -> None:
    stderr = session.do("fs.readFileSync('/no/such/file')").stderr
    assert "ENOENT" in stderr
    assert "node:" not in stderr
    assert "driver" not in stderr
    assert "code: 'ENOENT'" in stderr
    assert stderr.rstrip().endswith("}")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("throw 5", "Uncaught 5\n"),
        ("throw undefined", "Uncaught undefined\n"),
        ("throw {a: 1}", "Uncaught { a: 1 }\n"),
        ("await Promise.reject(new RangeError('r'))", "Uncaught RangeError: r\n"),
        ("Promise.reject(new RangeError('r'))", "Uncaught RangeError: r\n"),
        ("async function main() { throw new Error('m') }\nmain()", "Uncaught Error: m\n"),
        ("new Promise((_, reject) => setTimeout(reject, 1, 'no'))", "Uncaught 'no'\n"),
        ("setTimeout(() => { throw new Error('t') }, 1)", "Uncaught Error: t\n"),
        ("Promise.reject(new Error('u')); undefined", "Uncaught Error: u\n"),
        ("process.nextTick(() => { throw new Error('n') }); undefined", "Uncaught Error: n\n"),
        ("new (require('events'))().emit('error', new Error('e'))", "Uncaught Error: e\n"),
        ("throw new Error('outer', {cause: new Error('inner')})", "[cause]: Error: inner\n"),
        (
            "throw {get [Symbol.toStringTag]() { throw 1 }, [util.inspect.custom]() { throw 1 }}",
            "cannot be shown",
        ),
        ("({[util.inspect.custom]() { throw new Error('unshowable') }})", "Uncaught Error: unshowable\n"),
        ("(function deep() { deep() })()", "Uncaught RangeError: Maximum call stack size exceeded\n"),
    ],
)
def test_uncaught_errors_end_the_block(session: JavaScriptRuntime, code: str, shown: str) -> None:
    ran = session.do(code)
    assert shown in ran.stderr
    assert (ran.ended, ran.exit_code) == ("error", 1)
    assert "node:" not in ran.stderr
    assert session.do("'on'").text == "'on'\n"


def test_syntax_errors_show_their_position(session: JavaScriptRuntime) -> None:
    ran = session.do("let fine = 1\nlet wrong = = 2")
    assert ran.stderr.endswith(".js:2\nlet wrong = = 2\n            ^\n\nUncaught SyntaxError: Unexpected token '='\n")
    assert ran.ended == "error"
    for code in ("(", "`", "'", "/*", "let x; let x", "}", "import a from", "export default 1", "await = 1"):
        assert "SyntaxError" in session.do(code).stderr
    assert "SyntaxError" in session.do("eval('(')").stderr


def test_a_failed_declaration_can_be_repeated(session: JavaScriptRuntime) -> None:
    assert session.do("const halfway = (() => { throw new Error('no') })()").ended == "error"
    assert session.do("const halfway = 1; halfway").text == "1\n"


def test_errors_of_a_finished_block_do_not_touch_the_next(session: JavaScriptRuntime) -> None:
    session.do(
        "let fire; new Promise((resolve) => { fire = resolve }).then(() => { throw new Error('old') }); undefined"
    )
    old = session.runtime.block if session.runtime else None
    ran = session.do("fire(); await new Promise((done) => setTimeout(done, 20)); 'fine'")
    assert (ran.text, ran.ended) == ("'fine'\n", "done")
    assert old is not None
    assert "Error: old" in old.spool.read()


def test_programs_can_handle_uncaught_exceptions(session: JavaScriptRuntime) -> None:
    code = "process.once('uncaughtException', (error) => console.log('took', error.message))\n"
    ran = session.do(code + "setTimeout(() => { throw new Error('it') }, 1)")
    assert (ran.text, ran.ended) == ("took it\n", "done")


# -- the end of the process ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "exit_code"),
    some(
        3,
        [
            ("console.log('last'); process.exit(2)", 2),
            ("console.log('last'); process.exit()", 0),
            ("process.exitCode = 4; console.log('last'); setTimeout(() => process.exit(), 5)", 4),
            ("await null; console.log('last'); process.exit(300)", 44),
            ("console.log('last'); process.abort()", -6),
            ("console.log('last'); process.kill(process.pid, 'SIGKILL'); for (;;);", -9),
            ("console.log('last'); process.reallyExit(5)", 5),
        ],
    ),
)
def test_the_end_of_the_process_is_reported(session: JavaScriptRuntime, code: str, exit_code: int) -> None:
    ran = session.do(code)
    assert (ran.ended, ran.exit_code) == ("died", exit_code)
    assert ran.stdout == "last\n"
    assert "ended" in ran.stderr
    assert session.do("'a new one'").text == "'a new one'\n"


def test_large_output_before_the_end_arrives_complete(session: JavaScriptRuntime) -> None:
    ran = session.do("process.stdout.write('x'.repeat(3e6)); process.exit(1)")
    assert ran.stdout == "x" * 3_000_000


def test_running_out_of_memory_is_reported(fresh: JavaScriptRuntime) -> None:
    fresh.context.exported["NODE_OPTIONS"] = "--max-old-space-size=30"
    ran = fresh.do("const hoard = []; for (;;) hoard.push(new Array(1000).fill(hoard.length))")
    assert ran.ended == "died"
    assert "heap out of memory" in ran.stderr
    assert fresh.do("1").text == "1\n"


def test_the_working_directory_survives(session: JavaScriptRuntime, tmp_path: Path) -> None:
    session.do(f"process.chdir('{tmp_path}')")
    session.do("process.exit(1)")
    assert session.do("process.cwd()").text == f"'{tmp_path}'\n"


def test_a_process_killed_between_blocks_is_replaced(session: JavaScriptRuntime) -> None:
    os.kill(int(session.do("process.pid").stdout), signal.SIGKILL)
    assert session.do("1").ended in ("done", "died")  # depending on whether it was noticed by then
    assert session.do("'on'").text == "'on'\n"


def test_terminate_leaves_nothing_behind(no_strays: None) -> None:
    javascript = JavaScriptRuntime()
    javascript.do("child_process.spawn('sleep', ['1000'], {detached: true, stdio: 'ignore'}).unref(); undefined")
    folder = javascript.runtime.folder if javascript.runtime else None
    javascript.terminate()
    assert folder is not None
    assert not folder.exists()
