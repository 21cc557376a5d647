"""Code for the conformance checks, in each language that runs here."""

from __future__ import annotations

import sys
from dataclasses import replace

from interpreter.languages.conformance import Samples

PYTHON = Samples(
    say="print('Grüße, 世界 🌍')",
    fail="raise ValueError('no')",
    keep="x = 41",
    recall="print(x + 1)",
    ask="try:\n    print(f'<{input()}>')\nexcept EOFError:\n    print('<>')",
    wait="import time\nprint('ready', flush=True)\ntime.sleep(600)",
    loop="print('ready', flush=True)\nwhile True:\n    pass",
    die="import os\nos.kill(os.getpid(), 9)",
    flood="for n in range(1, 50_001):\n    print('line', n)",
    where="import os\nprint(os.getcwd())",
    go="os.chdir('below')",
    env="print(os.environ['CONFORMANCE'])",
    figure="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
    table="import pandas\npandas.DataFrame({'n': [1, 2, 3]})",
    give="share(given=41)",
    take="print(taken + 1)",
)
SHELL = Samples(
    say="echo 'Grüße, 世界 🌍'",
    fail="exit 3",
    exit_code=3,
    keep="x=41",
    recall="echo $((x + 1))",
    wait="echo ready; sleep 600",
    loop="echo ready; while :; do :; done",
    die="kill -9 $$",
    flood="i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); echo line $i; done",
    where="pwd",
    go="cd below",
    env='echo "$CONFORMANCE"',
    take="echo $((shared_taken + 1))",
)
JAVASCRIPT = Samples(
    say="console.log('Grüße, 世界 🌍')",
    fail="throw new Error('no')",
    keep="let x = 41",
    recall="console.log(x + 1)",
    ask=(
        "const lines = require('readline').createInterface({ input: process.stdin });"
        "let said = ''; for await (const line of lines) { said = line; break; }"
        "lines.close(); console.log(`<${said}>`)"
    ),
    wait="console.log('ready'); await new Promise(() => setTimeout(() => {}, 600000))",
    loop="console.log('ready'); while (true) {}",
    die="process.kill(process.pid, 'SIGKILL')",
    flood="for (let n = 1; n <= 50000; n++) console.log(`line ${n}`)",
    where="console.log(process.cwd())",
    go="process.chdir('below')",
    env="console.log(process.env.CONFORMANCE)",
    figure="display.png('iVBORw0KGgo='.repeat(20))",
    give="share({ given: 41 })",
    take="console.log(taken + 1)",
)
TYPESCRIPT = replace(
    JAVASCRIPT,
    keep="interface Held { n: number }\nlet held: Held = { n: 41 };\nlet x: number = held.n",
    recall="console.log((x as number) + 1)",
)
FISH = Samples(
    say="echo 'Grüße, 世界 🌍'",
    fail="exit 3",
    exit_code=3,
    keep="set x 41",
    recall="math $x + 1",
    go="cd below",
    ask='read line; echo "<$line>"',
    wait="echo ready; sleep 600",
    loop="echo ready; while true; end",
    die="kill -9 $fish_pid",
    flood="for n in (seq 50000); echo line $n; end",
    where="pwd",
    env='echo "$CONFORMANCE"',
    take="math $shared_taken + 1",
)
RUBY = Samples(
    say="puts 'Grüße, 世界 🌍'",
    fail="raise 'no'",
    keep="x = 41",
    recall="puts x + 1",
    ask='puts "<#{gets.to_s.chomp}>"',
    wait="puts 'ready'; $stdout.flush; sleep 600",
    loop="puts 'ready'; $stdout.flush; loop {}",
    die="Process.kill(:KILL, $$); sleep",
    flood='1.upto(50000) { |n| puts "line #{n}" }; nil',
    where="puts Dir.pwd",
    go="Dir.chdir('below')",
    env="puts ENV['CONFORMANCE']",
    give="share given: 41",
    take="puts taken + 1",
)
R = Samples(
    say="cat('Grüße, 世界 🌍\\n')",
    fail="stop('no')",
    keep="x <- 41",
    recall="cat(x + 1, '\\n')",
    ask="cat('<', readline(), '>\\n', sep = '')",
    wait="cat('ready\\n'); Sys.sleep(600)",
    loop="cat('ready\\n'); repeat {}",
    die="tools::pskill(Sys.getpid(), 9); Sys.sleep(600)",
    flood="for (n in 1:50000) cat('line ', n, '\\n', sep = '')",
    where="cat(getwd())",
    go="setwd('below')",
    env="cat(Sys.getenv('CONFORMANCE'))",
    figure="plot(1:3)",
    table="data.frame(n = 1:3)",
    give="share(given = 41)",
    take="cat(taken + 1)",
)
JAVA = Samples(
    say='System.out.println("Grüße, 世界 🌍");',
    fail='throw new RuntimeException("no");',
    keep="int x = 41;",
    recall="System.out.println(x + 1);",
    ask=(
        'var lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));'
        'String said = lines.readLine(); System.out.println("<" + (said == null ? "" : said) + ">");'
    ),
    wait='System.out.println("ready"); Thread.sleep(600000);',
    loop='System.out.println("ready"); while (true) {}',
    die="Runtime.getRuntime().halt(9);",
    flood='for (int n = 1; n <= 50000; n++) System.out.println("line " + n);',
    give='share("given", 41);',
    take="System.out.println(taken + 1);",
)
SQL = Samples(
    say="SELECT 'Grüße, 世界 🌍' AS greeting",
    fail="SELECT * FROM nowhere",
    keep="CREATE TABLE kept AS SELECT 41 AS x",
    recall="SELECT x + 1 AS answer FROM kept",
    prints_tables=True,
    table="SELECT * FROM (VALUES (1), (2), (3)) AS numbers",
)
ONE_SHOT = {"name": "Script", "command": [sys.executable, "-X", "utf8", "-u", "{file}"], "extension": "py"}
# Each block is a new process: it keeps no state, and stopping ends the whole program.
PROGRAM = replace(
    PYTHON,
    keep=None,
    recall=None,
    go=None,
    figure=None,
    table=None,
    give=None,
    take="import os\nprint(int(os.environ['shared_taken']) + 1)",
    env="import os\n" + (PYTHON.env or ""),
)
DENO = {"name": "Deno", "command": "deno run --allow-all {file}", "extension": "ts"}
BUN = {"name": "Bun", "command": "bun run {file}", "extension": "ts"}
ONE_SHOT_TYPESCRIPT = replace(
    JAVASCRIPT,
    say="const greeting: string = 'Grüße, 世界 🌍'\nconsole.log(greeting)",
    keep=None,
    recall=None,
    ask="import { createInterface } from 'node:readline'\n"
    + (JAVASCRIPT.ask or "").replace("require('readline').", "").replace("let said =", "let said: string ="),
    go=None,
    figure=None,
    give=None,
    take="console.log(Number(process.env.shared_taken) + 1)",
)
KERNEL = {"name": "Kernel", "kernel": "python3", "extension": "py"}
# A kernel keeps the folder and the environment that it started with.
IPYKERNEL = replace(PYTHON, where=None, go=None, env=None, figure="%matplotlib inline\n" + (PYTHON.figure or ""))
# An interrupt in ipykernel's own code, just before it sends its reply. A second interrupt may do that.
STRIKE = """
session = get_ipython().kernel.session
send = session.send
def struck(stream, kind, *args, **more):
    if kind == "execute_reply":
        session.send = send
        raise KeyboardInterrupt
    return send(stream, kind, *args, **more)
session.send = struck
print("ready", flush=True)
while True:
    pass
"""
IR = {"name": "IR", "kernel": "ir", "extension": "R"}
# Each `cat` is a separate message in IRkernel, and 50,000 of them take minutes.
IRKERNEL = replace(R, where=None, go=None, env=None, flood="writeLines(paste('line', 1:50000))")
HTML = Samples(
    say="<script>console.log('Grüße, 世界 🌍')</script>",
    fail="<script>throw new Error('no')</script>",
    loop="<script>console.log('ready'); while (true) {}</script>",
    flood="<script>for (let n = 1; n <= 50000; n++) console.log(`line ${n}`)</script>",
    figure="<h1>Hi</h1>",
    take="<script>console.log(taken + 1)</script>",
)
REACT = Samples(
    say="export default function App() {\n  console.log('Grüße, 世界 🌍')\n  return <h1>Hi</h1>\n}",
    fail="export default function App() {\n  throw new Error('no')\n}",
    loop="console.log('ready')\nwhile (true) {}\nexport default () => <p />",
    flood="for (let n = 1; n <= 50000; n++) console.log(`line ${n}`)\nexport default () => <p />",
    figure="<h1>Hi</h1>",
    take="console.log(taken + 1)\nexport default () => <p />",
)
