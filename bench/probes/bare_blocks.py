"""The bare limit: a child process that runs code, without any of our parts."""

import json
import os
import pty
import shutil
import statistics
import subprocess
import sys
import time

from common import report

PYTHON_CHILD = """
import contextlib, io, json, sys
names = {}
for line in sys.stdin:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(json.loads(line), names)
    print(json.dumps(out.getvalue()), flush=True)
"""
NODE_CHILD = """
const vm = require("vm"), context = vm.createContext({});
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
  process.stdout.write(JSON.stringify(vm.runInContext(JSON.parse(line), context)) + "\\n");
});
"""
RUBY_CHILD = "STDIN.each_line { |line| puts eval(eval(line)); STDOUT.flush }"
R_CHILD = """
lines <- file("stdin", "r")
while (length(line <- readLines(lines, n = 1))) {
  cat(eval(parse(text = eval(parse(text = line)))), "\\n")
  flush(stdout())
}
"""
COLD = "from IPython.core.interactiveshell import InteractiveShell as S; S.instance().run_cell('1+1')"


def median(run, repeats=500):
    run()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def child(command, code):
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def run():
        process.stdin.write(json.dumps(code) + "\n")
        process.stdin.flush()
        process.stdout.readline()

    taken = median(run)
    process.stdin.close()
    process.wait()
    return taken


def fish():
    def run():
        subprocess.run(["fish", "--no-config", "-c", "echo 2"], check=True, stdout=subprocess.DEVNULL)

    return median(run, 30)


def jshell():
    """Snippets as lines, without jshell's feedback."""
    process = subprocess.Popen(
        ["jshell", "-s", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )

    def run():
        process.stdin.write("System.out.println(2)\n")
        process.stdout.readline()

    taken = median(run, 30)
    process.kill()
    process.wait()
    return taken


def kernel(name):
    """Time a block in a Jupyter kernel, from the request to its idle message; None if there is no such kernel."""
    try:
        from jupyter_client.manager import start_new_kernel

        manager, client = start_new_kernel(kernel_name=name)
    except Exception:  # noqa: BLE001 - no jupyter_client, no kernel, or one that does not start
        return None
    taken = median(lambda: client.execute_interactive("1 + 1", output_hook=lambda message: None), 100)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    return taken


def sql():
    try:
        import duckdb
    except ImportError:
        return None
    connection = duckdb.connect(":memory:")
    return median(lambda: connection.execute("SELECT 1 + 1").fetchall())


def bash():
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        ["bash", "--norc", "--noprofile"], stdin=terminal, stdout=terminal, stderr=terminal, env={"PS1": ""}
    )
    os.write(controller, b"stty -echo\n")
    seen = b""
    while b"echo\r\n" not in seen:
        seen += os.read(controller, 65536)

    def run():
        os.write(controller, b"echo 2; echo done$((1))\n")
        seen = b""
        while b"done1" not in seen:
            seen += os.read(controller, 65536)

    taken = median(run)
    process.kill()
    process.wait()
    return taken


def lines():
    code = "for _ in range(100000): print('x' * 79)"
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    while os.read(process.stdout.fileno(), 65536):
        pass
    process.wait()
    return time.perf_counter() - began


def cold():
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", COLD], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


node = shutil.which("node")
report(
    python=child([sys.executable, "-c", PYTHON_CHILD], "print(1 + 1)"),
    shell=bash(),
    javascript=child([node, "-e", NODE_CHILD], "1 + 1") if node else None,
    ruby=child(["ruby", "-e", RUBY_CHILD], "1 + 1") if shutil.which("ruby") else None,
    r=child(["Rscript", "-e", R_CHILD], "1 + 1") if shutil.which("Rscript") else None,
    java=jshell() if shutil.which("jshell") else None,
    ipykernel=kernel("python3"),
    irkernel=kernel("ir"),
    fish=fish() if shutil.which("fish") else None,
    sql=sql(),
    lines=min(lines() for _ in range(3)),
    cold=min(cold() for _ in range(3)),
)
