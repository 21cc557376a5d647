"""Measure the effects of the corpus's snippets: each runs under strace in a throw-away sandbox (bubblewrap).

    python -m policy.corpus.measure [--all] [--show TEXT]     from the folder `tests`

The workspace is /srv/space; /outside and the home folder /home/user have files too. There is no network: an attempt to
reach a host counts as contact. Without `--all`, only snippets without recorded effects are measured.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from interpreter.languages.sql import DRIVER as SQL_DRIVER
from policy.corpus import EFFECTS, Measured, Snippet, effects, snippets

SPACE = "/srv/space"
PREFIX, BASE = os.path.normpath(sys.prefix), os.path.realpath(sys.base_prefix)
LISTED = (SPACE, "/outside", "/home/user")
WATCHED = (SPACE, "/outside", "/home/user", "/tmp", "/root", "/var", "/srv")
# Side effects of the tools themselves: library caches, and files the loader and the shell read.
NOISE = re.compile(
    r"/(cache|driver|log)(/|$)|__pycache__|\.pyc$|/Rplots\.pdf$|/tmp/Rtmp|/home/user/\.duckdb|/home/user/\.(cache|config/matplotlib|npm|node)|/srv$|/tmp$"
)
HOSTS = (
    "example.com",
    "api.example.com",
    "pypi.org",
    "files.pythonhosted.org",
    "registry.npmjs.org",
    "github.com",
    "a.example",
)
SECONDS = 30
CALLS = (
    "execve,open,openat,creat,connect,sendto,bind,kill,tkill,tgkill,unlink,unlinkat,rmdir,rename,renameat,renameat2,mkdir,mkdirat,"
    "link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,chown,fchown,fchownat,lchown,truncate,ftruncate,utimensat,mknodat,chdir"
)
MISSING = re.compile(
    r"command not found|: not found|ModuleNotFoundError|Cannot find module|No module named|there is no package called|No such file or directory: '(ag|fd)'"
)


def make_world(folder: Path) -> None:
    """Write the files that every snippet finds."""
    space, outside, home = folder / "space", folder / "outside", folder / "home"
    for each in (space / "src", space / "data", space / "sub", outside / "sub", home / ".ssh", folder / "tmp"):
        each.mkdir(parents=True)
    rows = "date,region,product,units,price\n" + "".join(
        f"2024-{1 + n % 12:02}-{1 + n % 28:02},{'NSEW'[n % 4]},p{n % 5},{n % 7 + 1},{n % 9 + 0.5}\n" for n in range(60)
    )
    records = [{"name": f"n{n}", "value": n, "tags": ["a", "b"]} for n in range(5)]
    for name in ("data.csv", "sales.csv", "data/sales.csv", "data/a.csv", "data/b.csv"):
        (space / name).write_text(rows)
    for name in ("a", "b", "a.txt", "b.txt", "notes.txt", "log.txt", "README.md", "list", "words", "x.txt", "c.txt"):
        (space / name).write_text("one\ntwo\nthree ERROR 5\nfour user@example.com 2024-01-02\n")
    (space / "list.txt").write_text("a.txt\nb.txt\n")
    (space / "data.json").write_text(json.dumps({"items": records}))
    (space / "records.json").write_text(json.dumps(records))
    (space / "package.json").write_text('{"name": "x", "version": "1.0.0"}')
    (space / "a.xml").write_text("<a><b k='1'>x</b><b k='2'>y</b></a>")
    (space / "config.ini").write_text("[main]\nkey = value\n")
    (space / "config.yaml").write_text("key: value\n")
    (space / "src/main.py").write_text("def main():\n    print('TODO')\n")
    (space / "src/util.py").write_text("# TODO\nX = 1\n")
    for name in ("evil", "x"):
        (space / name).write_text("#!/bin/sh\n/usr/bin/touch /srv/space/OWNED\ncat 2>/dev/null\n")
        (space / name).chmod(0o755)
    (outside / "f").write_text("outside\n")
    (outside / "g.csv").write_text(rows)
    (outside / "sub/h").write_text("outside\n")
    (home / "notes.txt").write_text("home\n")
    (home / ".ssh/id_rsa").write_text("secret\n")
    (space / ".env").write_text("TOKEN=1\n")
    (folder / "hosts").write_text(
        "127.0.0.1 localhost\n" + "".join(f"127.1.0.{n + 1} {host}\n" for n, host in enumerate(HOSTS))
    )
    (folder / "resolv").write_text("nameserver 127.0.0.53\n")
    make = (
        "import sqlite3, zipfile, tarfile, gzip, struct, zlib\n"
        "c = sqlite3.connect('a.db'); c.execute('create table t (a int, b text)')\n"
        "c.executemany('insert into t values (?, ?)', [(n, str(n)) for n in range(5)]); c.commit(); c.close()\n"
        "import shutil; shutil.copy('a.db', 'data.db')\n"
        "z = zipfile.ZipFile('archive.zip', 'w'); z.write('a.txt'); z.close()\n"
        "t = tarfile.open('archive.tar.gz', 'w:gz'); t.add('a.txt'); t.close(); shutil.copy('archive.tar.gz', 'a.tar.gz')\n"
        "gzip.open('log.gz', 'wb').write(open('log.txt', 'rb').read())\n"
        "import numpy; numpy.save('a.npy', numpy.arange(4))\n"
        "from PIL import Image; Image.new('RGB', (8, 8)).save('image.png')\n"
    )
    subprocess.run([sys.executable, "-c", make], cwd=space, check=True)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "README.md", "src", "a.txt"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=space, check=True)


DRIVER = """
import sys
code = open('/driver/code', encoding='utf-8').read()
if sys.argv[1] == 'magic':
    from traitlets.config import Config
    from IPython.core.interactiveshell import InteractiveShell
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    print('', flush=True)
    shell.run_cell(code)
elif sys.argv[1] == 'sql':
    import runpy
    runpy.run_path('/driver/sql.py')['run'](code, None, {})
else:
    sys.argv = ['']
    sys.path[0] = ''
    exec(compile(code, '<block>', 'exec'), {'__name__': '__main__', '__builtins__': __builtins__})
"""


def command(snippet: Snippet) -> list[str]:
    if snippet.language == "shell":
        return ["bash", "/driver/code"]
    if snippet.language == "r":
        return ["Rscript", "--vanilla", "/driver/code"]
    if snippet.language == "sql":
        return [f"{PREFIX}/bin/python", "/driver/driver.py", "sql"]
    if snippet.language == "javascript":
        module = re.search(r"^\s*(import .* from|import [\"'*{])|\bawait\b", snippet.code, re.MULTILINE)
        return ["node", "/driver/code.mjs" if module and "require(" not in snippet.code else "/driver/code.cjs"]
    magic = re.search(r"^\s*(\w+\s*=\s*)?[%!]|get_ipython|display\(|^(ls|cd|rm|cat|pip) ", snippet.code, re.MULTILINE)
    return [f"{PREFIX}/bin/python", "/driver/driver.py", "magic" if magic else "plain"]


def measure(snippet: Snippet, world: Path, cache: Path) -> Measured:
    """Run one snippet in a copy of the world."""
    with tempfile.TemporaryDirectory() as name:
        own = Path(name)
        shutil.copytree(world, own / "world", symlinks=True)
        driver, log = own / "driver", own / "log"
        driver.mkdir()
        log.mkdir()
        for file in ("code", "code.mjs", "code.cjs"):
            (driver / file).write_text(snippet.code, encoding="utf-8")
        (driver / "driver.py").write_text(DRIVER)
        shutil.copy(SQL_DRIVER, driver / "sql.py")
        binds = ["--tmpfs", "/", "--proc", "/proc", "--dev", "/dev"]
        for path in ("/usr", "/etc", "/opt", PREFIX, BASE):
            binds += ["--ro-bind-try", path, path]
        for path in ("bin", "sbin", "lib", "lib64"):
            binds += ["--symlink", f"usr/{path}", f"/{path}"]
        for path, where in (("space", SPACE), ("outside", "/outside"), ("home", "/home/user"), ("tmp", "/tmp")):
            # `/tmp` must not hide an environment that is in it.
            binds += ["--bind", str(own / "world" / path), where] if path != "tmp" else ["--dir", "/tmp"]
        binds += [
            "--ro-bind",
            str(own / "world/hosts"),
            "/etc/hosts",
            "--ro-bind-try",
            str(own / "world/resolv"),
            "/etc/resolv.conf",
        ]
        binds += ["--bind", str(cache), "/cache", "--ro-bind", str(driver), "/driver", "--bind", str(log), "/log"]
        environment = {
            "PATH": f"{PREFIX}/bin:/usr/bin:/bin:/usr/sbin", "HOME": "/home/user", "LANG": "C.UTF-8", "TERM": "dumb",
            "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg", "MPLCONFIGDIR": "/cache", "XDG_CACHE_HOME": "/cache",
            "IPYTHONDIR": "/cache/ipython", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*",
        }  # fmt: skip
        settings = [word for key, value in environment.items() for word in ("--setenv", key, value)]
        sandbox = ["bwrap", *binds, "--unshare-all", "--die-with-parent", "--clearenv", *settings, "--chdir", SPACE]
        trace = ["strace", "-f", "-qq", "--seccomp-bpf", "-s", "300", "-e", f"trace={CALLS}", "-o", "/log/trace"]
        before = listing(own / "world")
        try:
            done = subprocess.run(
                [*sandbox, *trace, *command(snippet)], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
            )
            status, output = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
        except subprocess.TimeoutExpired as late:
            status, output = -1, str(late.stderr)
        after = listing(own / "world")
        trace_text = (log / "trace").read_text(errors="replace") if (log / "trace").exists() else ""
        effects = from_trace(trace_text, snippet.code)
    effects["creates"] = sorted(after.keys() - before.keys())
    effects["deletes"] = sorted({*(before.keys() - after.keys()), *effects["deletes"]})
    effects["overwrites"] = sorted(path for path in before.keys() & after.keys() if before[path] != after[path])
    effects["status"] = status
    if "--show" in sys.argv:
        print(output[-2000:])
    if re.search(r"^(bwrap|strace): ", output, re.MULTILINE) and "strace" not in snippet.code:
        raise RuntimeError(output)
    if MISSING.search(output):
        effects["missing"] = MISSING.search(output)[0]  # type: ignore[index]
    return {kind: value for kind, value in effects.items() if value or kind == "status"}


def listing(world: Path) -> dict[str, tuple[int, str, int]]:
    """Each file by its path in the sandbox, with its content and mode."""
    states = {}
    for part, where in (("space", SPACE), ("outside", "/outside"), ("home", "/home/user")):
        for folder, _, names in os.walk(world / part):
            for name in [*names, "."]:
                path = os.path.join(folder, name).removesuffix("/.")
                shown = where + path.removeprefix(str(world / part))
                if NOISE.search(shown) or (name == "." and path == str(world / part)):
                    continue
                state = os.lstat(path)
                is_file = os.path.isfile(path) and not os.path.islink(path)
                content = Path(path).read_bytes().hex()[:4000] if is_file else ""
                if "/.git/index" not in shown:  # git refreshes it even when only reading
                    states[shown] = (state.st_mode, content, state.st_size if is_file else 0)
    return states


CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)\)\s+= (-?\d+|\?)")


def from_trace(trace: str, code: str) -> Measured:
    """Read the effects from the system calls."""
    effects: dict[str, set[str]] = {
        kind: set()
        for kind in ("reads", "changes", "deletes", "renames", "contacts", "programs", "own programs", "kills")
    }
    folders: dict[str, str] = {}
    last = SPACE
    pieces: dict[str, str] = {}
    processes: set[str] = set()
    made: set[str] = set()
    first = True
    for line in trace.splitlines():
        line, process = joined(line, pieces)
        if line is None:
            continue
        processes.add(process)
        match = CALL.match(line)
        if match is None:
            continue
        name, given, result = match[2], match[3], match[4]
        texts = [
            text.encode().decode("unicode_escape", "replace") for text in re.findall(r'"((?:[^"\\]|\\.)*)"', given)
        ]
        here = folders.get(process, last)
        paths = [os.path.normpath(os.path.join(here, text)) for text in texts]
        address = re.search(r'sin6?_port=htons\((\d+)\).*?"([\d.:a-f]+)"', given)
        if name in ("connect", "sendto", "bind") and address and (name != "bind" or address[1] != "0"):
            number = re.fullmatch(r"127\.1\.0\.(\d+)", address[2])
            host = HOSTS[int(number[1]) - 1] if number else address[2]
            effects["contacts"].add(f"{host}:{address[1]}")
        if result.startswith("-") or result == "?" or name in ("connect", "sendto", "bind"):
            continue
        if name == "execve":
            if not first:
                effects["programs"].add(
                    paths[0].removeprefix(f"{PREFIX}/bin/")
                )  # programs of this Python, wherever it is installed
                if paths[0].startswith((SPACE, "/outside", "/home/user", "/tmp")) and not paths[0].startswith(PREFIX):
                    effects["own programs"].add(paths[0])
            first = False
        elif name == "chdir":
            folders[process] = last = paths[0]  # a new process begins where the last one went
        elif name in ("kill", "tkill", "tgkill"):
            target = given.split(",")[0].strip()
            if (
                "strace" not in code
                and target not in processes
                and target != "0"
                and ", 0" not in given
                and name == "kill"
            ):
                effects["kills"].add(target)
        elif not paths:
            continue
        elif name.startswith("rename"):
            if is_relevant(paths[-1]):
                effects["renames"].add(f"{paths[0]} -> {paths[-1]}")
        elif name in ("unlink", "unlinkat", "rmdir"):
            if paths[-1] in made:  # a temporary file
                effects["changes"].discard(paths[-1])
            elif is_relevant(paths[-1]):
                effects["deletes"].add(paths[-1])
        elif name in ("open", "openat", "creat"):
            writes = re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", given) or name == "creat"
            if writes and is_relevant(paths[0]):
                made |= {paths[0]} if "O_EXCL" in given else set()
                if not paths[0].startswith(LISTED):  # there, changes are found by comparing listings
                    effects["changes"].add(paths[0])
            elif not writes and outside(paths[0], code):
                effects["reads"].add(paths[0])
        elif is_relevant(paths[-1]):
            effects["changes"].add(paths[-1])
    return {kind: sorted(values) for kind, values in effects.items()}


def joined(line: str, pieces: dict[str, str]) -> tuple[str | None, str]:
    """Join a call that strace split over two lines because another process interrupted it."""
    process = line.split(maxsplit=1)[0] if line.strip() else ""
    if line.endswith("<unfinished ...>"):
        pieces[process] = line.removesuffix("<unfinished ...>")
        return None, process
    if resumed := re.match(r"\d+\s+<\.\.\. \w+ resumed>(.*)", line):
        return pieces.pop(process, "") + resumed[1].lstrip(), process
    return line, process


def is_relevant(path: str) -> bool:
    """Is it a relevant file, not part of the system or a cache?"""
    return path.startswith(WATCHED) and not NOISE.search(path) and not path.startswith((PREFIX, f"{SPACE}/.git/index"))


def outside(path: str, code: str) -> bool:
    """Is it a file outside the workspace that the code uses, not one that every program reads?"""
    if path.startswith(("/outside", "/home/user", "/root", "/var/log", "/tmp")):
        own = path.startswith((PREFIX, BASE))
        return not own and not NOISE.search(path) and not re.match(r"/home/user/\.[\w.-]*(git|inputrc|rc)", path)
    return path.startswith("/etc/") and path in code


def labelled(snippet: Snippet) -> Measured:
    """`#: by hand: creates, contacts`, or `nothing`."""
    kinds = [kind.strip() for kind in snippet.label.removeprefix("by hand:").split(",")]
    return {"how": "by hand", **{kind: ["*"] for kind in kinds if kind != "nothing"}}


def main() -> None:
    every = [*snippets("snippets"), *snippets("analyst")]
    if "--show" in sys.argv:
        every = [snippet for snippet in every if sys.argv[-1] in snippet.code]
    known = {} if "--all" in sys.argv or "--show" in sys.argv or not EFFECTS.exists() else effects()
    results = {snippet.key: known[snippet.key] for snippet in every if snippet.key in known and not snippet.label}
    results |= {snippet.key: labelled(snippet) for snippet in every if snippet.label}
    left = [snippet for snippet in every if snippet.key not in results]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(int(os.environ.get("WORKERS", "2"))) as pool:
        world, cache = Path(name, "world"), Path(name, "cache")
        world.mkdir()
        cache.mkdir()
        make_world(world)
        warm = Snippet("python", "import matplotlib.pyplot\n")
        measure(warm, world, cache)
        for snippet, measured in zip(left, pool.map(lambda each: measure(each, world, cache), left), strict=True):
            results[snippet.key] = measured
            if "missing" in measured or "--show" in sys.argv:
                print(snippet.language, repr(snippet.code[:100]), measured)
    if "--show" not in sys.argv:
        lines = (f"{json.dumps(key)}: {json.dumps(measured)}" for key, measured in sorted(results.items()))
        EFFECTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{len(left)} measured, {len(results)} in all")


if __name__ == "__main__":
    main()
