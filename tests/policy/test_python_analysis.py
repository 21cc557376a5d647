"""Static analysis of Python code."""

from __future__ import annotations

import pytest

from interpreter.policy.analysis import analyze
from policy.analyzed_effects import WORKSPACE, seen


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.remove('x')",
        "import os as o\no.unlink('x')",
        "from os import remove as r\nr('x')",
        "os.remove('x')",
        "import os\nf = os.remove\nf('x')",
        "getattr(__import__('os'), 'remove')('x') if 0 else __import__('os').remove('x')",
        "import importlib\nimportlib.import_module('os').remove('x')",
        "from pathlib import Path\nPath('x').unlink()",
        "from pathlib import Path\np = Path('x')\np.unlink(missing_ok=True)",
        "from pathlib import Path\n(Path() / 'x').unlink()",
        "import os\nos.remove(os.path.join('x'))",
        "import os\nname = 'x'\nos.remove(f'{name}')",
        "import os\nos.remove(path='x')",
        "exec('import os; os.remove(\"x\")')",
        "import os\nos.system('rm x')",
        "import subprocess\nsubprocess.run(['rm', 'x'])",
        "import subprocess\nsubprocess.run('rm x', shell=True)",
        "import subprocess as sp\nsp.check_call('rm x'.split()) if 0 else sp.call(('rm', 'x'))",
        "from subprocess import Popen\nPopen(['bash', '-c', 'rm x'])",
        "import asyncio\nawait asyncio.create_subprocess_exec('rm', 'x')",
        "!rm x",
        "out = !rm x",
        "%sx rm x",
        "%%bash\nrm x",
        "rm x",
        "if True:\n    !rm x",
        "def f():\n    import os\n    os.remove('x')",
        "class A:\n    import os\n    os.remove('x')",
        "import os\n[os.remove(p) for p in ['x']]",
        "import shutil\nshutil.move('x', 'y')",
        "get_ipython().system('rm x')",
        "import posix\nposix.remove('x')",
        "import builtins\nbuiltins.exec('import os; os.remove(\"x\")')",
        "import subprocess\nsubprocess.run('rm x'.split())",
        "import subprocess, shlex\nwords = shlex.split('rm x')\nsubprocess.run(words)",
        "import subprocess\nsubprocess.run(' '.join(['rm', 'x']), shell=True)",
        "import subprocess\nsubprocess.run(['any', 'x'], executable='/bin/rm')",
        "import os\nos.execvp('rm', ['rm', 'x'])",
        "import os\nos.spawnlp(os.P_WAIT, 'rm', 'rm', 'x')",
        "import os\ngetattr(os, 'system')('rm x')",
        "from os import *\nsystem('rm x')",
        "from threading import Timer\nTimer(1, __import__('os').remove, ['x']) or os.remove('x')",
    ],
)
def test_a_deletion_is_found_however_it_is_written(code: str) -> None:
    assert ("delete", "x") in {(kind, what.removeprefix("./")) for kind, what in seen("python", code)}


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        ("print(sum(x ** 2 for x in range(10)))", set()),
        ("x = (1\n  % 2)", set()),
        ("open('a')", {("read", "a")}),
        ("list(map(open, ['a'], ['w']))", {("write", "*")}),
        ("open('a', 'w')", {("write", "a")}),
        ("open('a', mode='r+')", {("write", "a")}),
        ("open(p, m)", {("write", "*")}),
        ("open(f'out/{n}.txt', 'x')", {("write", "out/*.txt")}),
        ("import pandas as pd\npd.read_csv('a.csv').to_csv('b.csv')", {("read", "a.csv"), ("write", "b.csv")}),
        ("import pandas as pd\npd.read_csv('https://a.example/x.csv')", {("network", "a.example")}),
        ("df.to_csv()", set()),
        ("plt.savefig('a.png')", {("write", "a.png")}),
        ("requests.get('https://a.example/x')", {("network", "a.example")}),
        ("import requests as r\nr.post(url)", {("network", "network")}),
        ("import socket\ns = socket.socket()\ns.connect(('a.example', 80))", {("network", "a.example")}),
        ("import smtplib\nsmtplib.SMTP('mail.example')", {("network", "mail.example")}),
        ("import boto3\nboto3.client('s3')", {("network", "network")}),
        ("import sqlite3\nc = sqlite3.connect('a.db')\nc.execute('select 1')", {("write", "a.db")}),
        ("import sqlite3\nc = sqlite3.connect('a.db')\nc.execute('drop table t')", {("write", "a.db"), ("database", "a.db")}),
        ("import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('drop table t')", set()),
        ("conn.execute('SELECT * FROM t WHERE a = ?', (1,))", set()),
        ("conn.execute('delete from t')", {("database", "a database")}),
        ("df.to_sql('t', engine)", {("database", "a database")}),
        ("import os\nos.kill(1, 9)", {("kill", "process 1")}),
        ("import os\nos.kill(child.pid, 9)", {("kill", "a process")}),
        ("import shutil\nshutil.rmtree('a')", {("delete", "a")}),
        ("%pip install a b", {("install", "a"), ("install", "b"), ("network", "pypi.org")}),
        ("import sys, subprocess\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'a'])", {("install", "a"), ("network", "pypi.org")}),
        ("list(map(os.remove, names))", {("delete", "*")}),
        ("for p in Path('a').glob('*.x'):\n    p.unlink()", {("read", "a"), ("delete", "a/*")}),
        ("'a'.replace('b', 'c')\n[1].remove(1)\n{}.get('x')", set()),
        ("df.rename(columns={'a': 'b'})", set()),
        ("for r, d, fs in os.walk('a'):\n    for f in fs:\n        os.remove(os.path.join(r, f))", {("read", "a"), ("delete", "a/*/*")}),
        ("p.open('w')", {("write", "*")}),
        ("import os\nos.open('a', os.O_WRONLY)", {("write", "a")}),
        ("session.get(url)", {("network", "network")}),
        ("import subprocess\nsubprocess.run('make', cwd='/x')", {("program", "make")}),
        ("%%writefile a.py\nimport os", {("write", "a.py")}),
    ],
)  # fmt: skip
def test_effects_of_calls(code: str, effects: set[tuple[str, str]]) -> None:
    assert seen("python", code) == effects


@pytest.mark.parametrize(
    "code",
    ["eval(x)", "exec(x)", "exec('a' + b)", "__import__(name)", "getattr(o, name)()", "globals()['f']()", "import nobody_knows_it",
     "from . import a", "().__class__.__bases__[0].__subclasses__()", "import ctypes\nctypes.CDLL('x')", "pickle.loads(b)",
     "def f(:", "from_another_block()", "%run x.py", "os.execv(p, a)", "import sys\nsys.modules['os']", "a\0b",
     "os.system(command)", "computer.skills.run(a)", "import _posixsubprocess", "subprocess.run(command)"],
)  # fmt: skip
def test_effects_that_cannot_be_analyzed_are_unknown(code: str) -> None:
    assert analyze("python", code, WORKSPACE).unknown


def test_a_call_has_the_effects_of_an_earlier_function() -> None:
    first = analyze(
        "python", "import os\ndef clean():\n    os.remove('x')\ndef count(a):\n    return len(a)", WORKSPACE
    )
    assert analyze("python", "clean()", WORKSPACE).unknown
    then = analyze("python", "n = count([])\nclean()", WORKSPACE, known=first.defines)
    assert [(effect.kind, effect.what, effect.line) for effect in then.all] == [("delete", "x", 2)]


def test_an_unknown_module_of_an_earlier_block_stays_unknown() -> None:
    first = analyze("python", "import nobody_knows_it as n", WORKSPACE)
    assert analyze("python", "n.go()", WORKSPACE, known=first.defines).unknown


def test_chdir_changes_where_paths_point() -> None:
    found = analyze("python", "import os\nos.chdir('/elsewhere')\nopen('x', 'w')", WORKSPACE).of("write")
    assert [(effect.place, effect.full) for effect in found] == [("outside", "/elsewhere/x")]


def test_access_to_secrets_is_found() -> None:
    assert [effect.what for effect in analyze("python", "open('.env')", WORKSPACE).of("secret")] == [".env"]
    code = "from pathlib import Path\n(Path.home() / '.ssh' / 'id_rsa').read_text()"
    assert analyze("python", code, WORKSPACE).of("secret")
    assert not analyze("python", "open('id_rsa.pub')", WORKSPACE).of("secret")
    assert analyze("python", "import os\nprint(dict(os.environ))", WORKSPACE).of("secret")
    asked = "import os\nos.environ['A']\nos.environ.get('B')\n'C' in os.environ\nenv = {**os.environ, 'D': '1'}"
    assert not analyze("python", asked, WORKSPACE).of("secret")


@pytest.mark.parametrize(
    ("code", "effect"),
    [
        ("computer.files.edit('x', 'a', 'b')", ("write", "x")),
        ("computer.files.replace('x', 'a', 'b')", ("write", "x")),
        ("computer.files.patch('*** Begin Patch\\n*** Delete File: x\\n*** End Patch')", ("delete", "x")),
        ("computer.files.read(path='x')", ("read", "x")),
        ("computer.skills.save('f', 'import os; os.remove(\"x\")')", ("delete", "x")),
    ],
)
def test_file_effects_of_computer_tools_are_found(code: str, effect: tuple[str, str]) -> None:
    found = seen("python", code)
    assert effect in found and not any(kind == "unknown" for kind, _ in found)


def test_effects_of_a_skill_are_unknown() -> None:
    assert "unknown" in {kind for kind, _ in seen("python", "computer.skills.run('tidy')")}
    assert any(not effect.known for effect in analyze("javascript", "await computer.skills.run('tidy')", WORKSPACE).all)
