"""JavaScript output: streams are separate, in order, complete, and belong to the right block."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from javascript_runtimes import JavaScriptRuntime, session
from python_runtimes import Ran
from waiting import until, worker_of

__all__ = ["session"]
pytestmark = pytest.mark.needs("node")


def pieces_of(ran: Ran) -> list[tuple[str, str]]:
    """(stream, text) pieces in order; adjacent pieces of one stream are joined."""
    pieces: list[tuple[str, str]] = []
    for chunk in ran.chunks:
        if chunk.get("format") == "output":
            name = chunk.get("stream", "stdout")
            if pieces and pieces[-1][0] == name:
                pieces[-1] = (name, pieces[-1][1] + chunk["content"])
            else:
                pieces.append((name, chunk["content"]))
    return pieces


def test_stdout_and_stderr_in_order(session: JavaScriptRuntime) -> None:
    code = """
console.log('a', {b: 1}); console.error('c'); process.stdout.write('d'); console.warn('%s!', 'e')
fs.writeSync(1, 'f\\n'); await new Promise((done) => fs.write(2, Buffer.from('xgx'), 1, 1, done))
console.table([{h: 1}])
"""
    ran = session.do(code)
    assert pieces_of(ran)[:6] == [
        ("stdout", "a { b: 1 }\n"), ("stderr", "c\n"), ("stdout", "d"), ("stderr", "e!\n"),
        ("stdout", "f\n"), ("stderr", "g"),
    ]  # fmt: skip
    assert "│ (index) │ h │" in ran.stdout


def test_output_comes_while_the_block_runs(session: JavaScriptRuntime) -> None:
    running = session.run("console.log('first'); await new Promise(() => {})")
    assert any("first" in str(chunk["content"]) for chunk in running)
    running.close()


@pytest.mark.full
def test_100000_lines_arrive_complete(session: JavaScriptRuntime) -> None:
    ran = session.do("for (let i = 0; i < 100000; i++) console.log('line', i)")
    assert ran.stdout == "".join(f"line {i}\n" for i in range(100_000))


def test_a_line_of_10_megabytes_arrives_complete(session: JavaScriptRuntime) -> None:
    assert session.do("console.log('🎉'.repeat(2500000))").stdout == "🎉" * 2_500_000 + "\n"
    assert session.do("'ab'.repeat(5e6)").stdout.endswith("... 9990000 more characters\n")


def test_100_megabytes_in_bounded_memory(session: JavaScriptRuntime) -> None:
    session.do("const line = 'x'.repeat(99999) + '\\n'")
    worker = worker_of(session.runtime)
    before, peak, length = worker.memory_info().rss, 0, 0
    for chunk in session.run("for (let i = 0; i < 1000; i++) process.stdout.write(line)"):
        length += len(str(chunk["content"]))
        peak = max(peak, worker.memory_info().rss)
    assert length > 100_000_000
    assert peak < before + 100_000_000


def test_a_slow_consumer_loses_nothing(session: JavaScriptRuntime) -> None:
    """The program has to wait until the pipe has room, and is interruptible while it does."""
    running = session.run("for (let i = 0; ; i++) process.stdout.write(`${i} ${'x'.repeat(1e6)}\\n`)")
    text = ""
    while text.count("\n") < 20:
        text += str(next(running).get("content", ""))
    running.close()
    lines = text.removeprefix("1").splitlines()[:20]  # the active line
    assert [line.partition(" ")[0] for line in lines] == [str(i) for i in range(20)]
    assert session.do("1 + 1").stdout == "2\n"


def test_unusual_characters_survive(session: JavaScriptRuntime) -> None:
    code = r"""
console.log('\u0000 \u001b[31mred\u001b[0m \r é 🎉 \ud800 "\\ud" \u2028')
const bytes = Buffer.from('é🎉'); for (const byte of bytes) process.stdout.write(Buffer.from([byte]))
process.stdout.write(Buffer.from([0xff, 0x41])); process.stdout.write('4142', 'hex')
process.stdout.write(Buffer.from([0xf0, 0x9f])); undefined
"""
    expected = '\0 \x1b[31mred\x1b[0m \r é 🎉 \ufffd "\\ud" \u2028\né🎉\ufffdAAB\ufffd'
    assert session.do(code).stdout == expected


def test_streams_can_be_piped_into(session: JavaScriptRuntime) -> None:
    code = """
const { Readable } = require('stream'); const { pipeline } = require('stream/promises')
await pipeline(Readable.from(['a', 'b']), process.stdout); process.stdout.end('c')
await new Promise((done) => process.stdout.write('d', done)); process.stdout.write(5)
"""
    ran = session.do(code)
    assert ran.stdout == "abcd"
    assert "ERR_INVALID_ARG_TYPE" in ran.stderr


def test_worker_threads_print_too(session: JavaScriptRuntime) -> None:
    code = "const { Worker } = require('worker_threads')\nconst worker = new Worker(`console.log('from a thread')`, {eval: true})\n"
    assert session.do(code + "await new Promise((done) => worker.on('exit', () => done()))").text == "from a thread\n"


# -- later output -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "setTimeout(() => console.log('late'), 50)",
        "setImmediate(() => setTimeout(() => console.log('late'), 20)); undefined",
        "fs.readFile('/dev/null', () => setImmediate(() => console.log('late')))",
        "child_process.exec('sleep 0.1; echo late', (error, out) => console.log(out.trim())); undefined",
        "let n = 0; const ticking = setInterval(() => { if (++n == 3) { clearInterval(ticking); console.log('late') } }, 20)",
        "http.get('http://127.0.0.1:1').on('error', () => console.log('late')); undefined",
    ],
)
def test_the_block_waits_for_output_that_comes_soon(session: JavaScriptRuntime, code: str) -> None:
    ran = session.do(code)
    assert (ran.text, ran.ended) == ("late\n", "done")


@pytest.mark.parametrize(
    "code",
    [
        "const far = setTimeout(() => {}, 3600e3)",
        "const ticks = setInterval(() => {}, 60e3)",
        "const server = http.createServer((_, reply) => reply.end('served')).listen(0)",
        "(await fetch(`http://127.0.0.1:${server.address().port}`)).status",
    ],
)
def test_the_block_does_not_wait_for_servers_and_long_timers(session: JavaScriptRuntime, code: str) -> None:
    waited = "setTimeout(() => console.log('waited'), 1900).unref()"  # less than it would for something that comes soon
    ran = session.do(f"{code}; {waited}; undefined")
    assert (ran.text, ran.ended) == ("", "done")


def test_late_output_stays_with_its_block(session: JavaScriptRuntime) -> None:
    session.do("""
let released; const gate = new Promise((resolve) => { released = resolve })
async function background() { await gate; console.log('old'); await null; process.stderr.write('old') }
let turns = 0; background(); const tick = setInterval(() => console.log('old', ++turns), 1); tick.unref()
""")
    old = session.runtime.block if session.runtime else None
    wait = "while (turns < 6) await new Promise((done) => setTimeout(done, 5))"
    ran = session.do(f"released(); {wait}; console.log('new')")
    assert ran.text == "new\n"
    assert old is not None
    until(lambda: "old 6\n" in old.spool.read() and "old\nold" in old.spool.read(), "its late output")
    session.do("clearInterval(tick)")
    assert session.do("console.log('new')").text == "new\n"


def test_functions_print_in_the_block_that_calls_them(session: JavaScriptRuntime) -> None:
    session.do("function announce() { console.log('here') }")
    assert session.do("announce(); setTimeout(announce, 10); await null; announce()").text == "here\nhere\nhere\n"


# -- child processes ----------------------------------------------------------------------------------------------


def test_output_of_child_processes_stays_in_order(session: JavaScriptRuntime, tmp_path: Path) -> None:
    code = """
const inherit = { stdio: 'inherit' }; const { once } = require('events')
console.log(1); child_process.execSync('echo 2; echo E2 >&2', inherit)
console.log(3); child_process.spawnSync('sh', ['-c', 'echo 4'], { stdio: ['ignore', 1, 2] })
console.log(5); await once(child_process.spawn('echo', ['6'], inherit), 'exit')
console.log(7); child_process.execFileSync('echo', ['8'], { stdio: [0, process.stdout, 'pipe'] })
console.log(9); await once(child_process.fork('./ten.js'), 'exit'); undefined
"""
    (tmp_path / "ten.js").write_text("console.log(10)")
    session.context.cwd = str(tmp_path)
    ran = session.do(code)
    assert ran.ended == "done", ran.stderr
    assert ran.stdout == "".join(f"{n}\n" for n in range(1, 11))
    assert ran.stderr == "E2\n"


def test_imported_child_process_functions_are_captured(session: JavaScriptRuntime) -> None:
    code = "import { execSync } from 'child_process'; execSync('echo inherited', { stdio: 'inherit' }); undefined"
    assert session.do(code).text == "inherited\n"


def test_stderr_of_a_failed_command(session: JavaScriptRuntime) -> None:
    ran = session.do("child_process.execSync('echo oops >&2; exit 3')")
    assert ran.stderr.startswith("oops\n")
    assert "status: 3" in ran.stderr
    assert ran.ended == "error"


def test_late_output_of_a_grandchild_stays_out_of_the_next_block(session: JavaScriptRuntime, tmp_path: Path) -> None:
    fifo = tmp_path / "gate"
    session.do(f"child_process.execSync('mkfifo {fifo}')")
    start = f"child_process.spawn('sh', ['-c', '(read x < {fifo}; echo old; echo old >&2; echo > {fifo}) &'], {{stdio: 'inherit'}}); undefined"
    assert session.do(start).text == ""
    old = session.runtime.block if session.runtime else None
    ran = session.do(
        f"child_process.execSync('echo go > {fifo}; read x < {fifo}; echo new', {{stdio: 'inherit'}}); undefined"
    )
    assert ran.text == "new\n"
    assert old is not None
    until(lambda: not old.running, "the end of its pipes")
    assert old.spool.read() == "old\nold\n"


# -- displays -----------------------------------------------------------------------------------------------------

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_an_image_as_last_expression_is_shown(session: JavaScriptRuntime) -> None:
    (image,) = session.do(f"Buffer.from('{PNG}', 'base64')").of_type("image")
    assert image["format"] == "base64.png"
    assert base64.b64decode(image["content"]) == base64.b64decode(PNG)


def test_display_shows_rich_formats(session: JavaScriptRuntime) -> None:
    ran = session.do("display.html('<b>x</b>'); display.json({a: 1}); display.markdown('# m'); display.svg('<svg/>')")
    (html,) = ran.of_type("code")
    assert (html["format"], html["content"], html["recipient"]) == ("html", "<b>x</b>", "user")
    mimes = {chunk.get("mime") for chunk in ran.chunks}
    assert {"application/json", "text/markdown", "image/svg+xml"} <= mimes
    assert session.do(f"display.png('{PNG}'); await display([1]); undefined").stdout == "[ 1 ]\n"
    bundle = "({[Symbol.for('Jupyter.display')]: () => ({'text/plain': 'own', 'text/html': '<i>own</i>'})})"
    assert session.do(bundle).of_type("code")[0]["content"] == "<i>own</i>"


def test_large_objects_are_abbreviated(session: JavaScriptRuntime) -> None:
    assert session.do("new (require('net').Server)()").stdout == "[Server]\n"
