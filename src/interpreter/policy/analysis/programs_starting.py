"""Programs that start other programs: what they start is looked at, too."""

from __future__ import annotations

import re
from collections.abc import Sequence

from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import Call, handles
from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.places import HOLE

# Options that take a value, for programs that only start another one.
_WRAPPERS = {
    "nohup": "", "time": "-f -o", "timeout": "-s -k --signal --kill-after", "nice": "-n", "ionice": "-c -n -p",
    "command": "", "builtin": "", "exec": "-a", "stdbuf": "-i -o -e", "setsid": "", "unbuffer": "",
    "caffeinate": "-t", "noglob": "", "chrt": "", "taskset": "-c", "coproc": "", "strace": "-e -o -p",
    "ltrace": "-e -o", "catchsegv": "", "numactl": "", "sudo": "-u -g -h -p -C -U -D", "doas": "-u -C",
    "env": "-u -C -S --unset --chdir --split-string", "chroot": "", "watch": "-n -d --interval", "entr": "",
    "flock": "-w -E", "script": "-c", "xvfb-run": "-s -a", "dbus-run-session": "", "busybox": "",
    "toybox": "", "unshare": "-S -G -R -w", "fakeroot": "", "systemd-run": "-p -u --unit --property", "prlimit": "",
}  # fmt: skip
_LEADING = {"timeout": 1, "chrt": 1, "chroot": 1, "flock": 1, "taskset": 1}
_ROOT = ("sudo", "doas", "chroot")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@handles(*_WRAPPERS)
def wrapper(call: Call, doing: Doing, notes: Notes) -> None:
    name = call.words[0].rsplit("/", 1)[-1]
    if name == "command" and {"-v", "-V"} & set(call.arguments[:1]):
        return
    arguments = Arguments(call.arguments, _WRAPPERS[name], stop_early=True)
    words = arguments.operands[_LEADING.get(name, 0) :]
    while words and _ASSIGNMENT.match(words[0]):
        doing.unknown(f"{words[0].partition('=')[0]} is set for a command") if _telling(words[0]) else None
        words = words[1:]
    if not words and call.stdin is not None:
        nested(call.stdin, call, notes)
    for text in arguments.value("-S", "--split-string", "-c"):
        nested(text, call, notes)
    if name == "env" and not words:
        doing.note("secret", "the environment")
    if name in _ROOT:
        doing.note("unknown", f"{name}: with other rights than yours")
    elif words and not doing.effects[1:]:
        doing.dropped = True
    if words:
        _inner(words, call, notes)


def _telling(word: str) -> bool:
    from interpreter.policy.analysis.programs_builtins import TELLING

    return bool(TELLING.fullmatch(word.partition("=")[0]))


@handles("xargs", "parallel")
def xargs(call: Call, doing: Doing, notes: Notes) -> None:
    taking = "-n -P -I -L -d -a -s -E -j --max-args --max-procs --replace --delimiter --arg-file --jobs"
    arguments = Arguments(call.arguments, taking, stop_early=True)
    doing.read(*arguments.value("-a", "--arg-file"))
    mark = next(iter(arguments.value("-I", "--replace")), "{}")
    words = [word.replace(mark, HOLE) for word in arguments.operands] or ["echo"]
    _inner([*words, HOLE], call, notes)


@handles("bash", "sh", "zsh", "dash", "ksh", "fish", "su")
def shell(call: Call, doing: Doing, notes: Notes) -> None:
    taking = "-c -o -O --rcfile --init-file" + (" -s -g" if call.words[0] == "su" else "")
    arguments = Arguments(call.arguments, taking, stop_early=True)
    if call.words[0] == "su":
        doing.unknown("su: with other rights than yours")
    if codes := arguments.value("-c", "--command"):
        for code in codes:
            nested(code, call, notes)
    elif arguments.operands and call.words[0] != "su":
        _script(arguments.operands[0], call, doing)
    elif call.stdin is not None:
        nested(call.stdin, call, notes)
    elif not arguments.has("--version", "--help"):
        doing.unknown(f"{call.words[0]} runs what it reads")
        nested(call.piped, call, notes)


@handles("eval")
def evaluate(call: Call, doing: Doing, notes: Notes) -> None:
    nested(" ".join(call.arguments), call, notes)


@handles("source", ".")
def source(call: Call, doing: Doing, notes: Notes) -> None:
    _script("".join(call.arguments[:1]), call, doing)


@handles("trap")
def trap(call: Call, doing: Doing, notes: Notes) -> None:
    if len(call.arguments) > 1 and call.arguments[0] not in ("-", "", "-p", "-l"):
        nested(call.arguments[0], call, notes)


@handles("python", "python3", "python2", "ipython", "pypy3", "python3.11", "python3.12", "python3.13", "python3.14")
def python(call: Call, doing: Doing, notes: Notes) -> None:
    from interpreter.policy.analysis.python import look_at_python

    arguments = Arguments(call.arguments, "-c -m -W -X", stop_early=True)
    if arguments.has("-c"):
        look_at_python(_code_and_rest(call.arguments, "-c")[0], call.line, notes)
    elif arguments.has("-m"):
        module, rest = _code_and_rest(call.arguments, "-m")
        _module(module, rest, call, doing, notes)
    elif arguments.operands and arguments.operands[0] != "-":
        _script(arguments.operands[0], call, doing)
    elif call.stdin is not None:
        look_at_python(call.stdin, call.line + 1, notes)
    elif not arguments.has("--version", "-V", "-h", "--help"):
        doing.unknown("python runs what it reads")
        look_at_python(call.piped, call.line, notes) if call.piped else None


def _code_and_rest(words: Sequence[str], option: str) -> tuple[str, list[str]]:
    """What follows `-c` or `-m`, and what is then left for the program."""
    for at, word in enumerate(words):
        if word == option:
            return "".join(words[at + 1 : at + 2]), list(words[at + 2 :])
        if word.startswith(option):
            return word[2:], list(words[at + 1 :])
    return "", []


def _module(module: str, rest: list[str], call: Call, doing: Doing, notes: Notes) -> None:
    if module in ("pip", "uv", "ipython", "black", "ruff", "mypy"):
        _inner([module, *rest], call, notes)
    elif module == "venv":
        doing.write(*(word for word in rest if not word.startswith("-")))
    elif module == "http.server":
        doing.network("", "send")
    elif module not in ("json.tool", "timeit", "this", "calendar", "site", "platform", "sysconfig", "compileall"):
        doing.program(f"python -m {module}", known=False)


@handles("node", "nodejs", "deno", "bun")
def node(call: Call, doing: Doing, notes: Notes) -> None:
    from interpreter.policy.analysis.javascript import look_at_javascript

    arguments = Arguments(call.arguments, "-e -p --eval --print -r --require", stop_early=True)
    if call.words[0] in ("bun", "deno") and arguments.operands[:1] in (["install"], ["add"], ["i"]):
        for package in arguments.operands[1:] or ["what package.json names"]:
            doing.note("install", package, how=call.words[0])
        doing.network("registry.npmjs.org", "get")
    elif codes := arguments.value("-e", "-p", "--eval", "--print"):
        look_at_javascript(codes[0], call.line, notes)
    elif arguments.operands:
        _script(arguments.operands[0], call, doing)
    elif call.stdin is not None:
        look_at_javascript(call.stdin, call.line + 1, notes)
    elif not arguments.has("--version", "-v", "-h", "--help"):
        doing.unknown("node runs what it reads")


@handles(
    "perl", "ruby", "php", "lua", "Rscript", "R", "osascript", "pwsh", "powershell", "tclsh", "expect", "julia", "java"
)
def other_language(call: Call, doing: Doing, notes: Notes) -> None:
    if call.arguments not in (["--version"], ["-v"], ["-V"], ["-version"]):
        doing.unknown(f"a program in {call.words[0]}, which is not looked into")


def _script(path: str, call: Call, doing: Doing) -> None:
    doing.read(path)
    doing.unknown(f"what is in {path or 'a script'}".replace(HOLE, "*"))


def look_into(code: str, line: int, notes: Notes) -> None:
    """Shell code that another program is given."""
    from interpreter.policy.analysis.shell import look_at_shell

    if HOLE in code:
        notes.not_known("shell", "shell code that is put together when it runs", line)
    look_at_shell(code.replace(HOLE, "${_}"), line, notes)


def nested(code: str, call: Call, notes: Notes) -> None:
    before = notes.places.cwd
    look_into(code, call.line, notes)
    if call.words[0] not in ("eval", "trap"):
        notes.places.cwd = before


def _inner(words: list[str], call: Call, notes: Notes) -> None:
    from interpreter.policy.analysis.programs import look_at

    if notes.too_deep:
        return notes.not_known("shell", "a command inside a command inside a command", call.line)
    notes.depth += 1
    look_at(Call(words, call.line, " ".join(words), call.stdin, call.functions, call.piped), notes)
    notes.depth -= 1
    return None
