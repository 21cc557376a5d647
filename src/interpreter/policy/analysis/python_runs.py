"""Calls that start programs, or run code that they are given."""

from __future__ import annotations

import ast
import shlex

from interpreter.policy.analysis.handlers import Call
from interpreter.policy.analysis.places import HOLE
from interpreter.policy.analysis.programs import look_at
from interpreter.policy.analysis.programs_starting import look_into
from interpreter.policy.analysis.python_called import Called
from interpreter.policy.analysis.python_table import Does, is_known_module


def run(does: Does, called: Called) -> None:
    """`subprocess.run` and its like: words, or a text with or without a shell."""
    argument = called.argument(does)
    words = called.values.words(argument)
    before = called.notes.places.cwd
    if (folder := called.keyword("cwd")) is not None:
        called.notes.places.move(called.values.text(folder))
    if _through_shell(called):
        look_into(words[0] if words else called.values.text(argument), called.doing.line, called.notes)
    elif (program := called.keyword("executable")) is not None:
        _command([called.values.text(program), *(words or [HOLE, HOLE])[1:]], called)
    elif words is None:
        _split(called.values.text(argument), called)
    else:
        _command(words, called)
    called.notes.places.cwd = before


def run_all(does: Does, called: Called) -> None:
    """The words are the arguments."""
    _command([called.values.text(each) for each in called.node.args] if called.node else [HOLE], called)


def execute(does: Does, called: Called) -> None:
    """`os.execvp(file, words)` and its like; with `all`, the words are arguments."""
    given = called.node.args[does.at :] if called.node else []
    if does.kind == "execall":
        words = [called.values.text(each) for each in given[1:]]
    else:
        words = called.values.words(given[1] if len(given) > 1 else None) or [HOLE, HOLE]
    _command([called.values.text(given[0] if given else None), *words[1:]], called)


def shell(does: Does, called: Called) -> None:
    look_into(called.text(does), called.doing.line, called.notes)


def code(does: Does, called: Called) -> None:
    """`exec` and `eval`: of a text that is written out, it can be looked at."""
    from interpreter.policy.analysis.python import look_at_python

    text = called.text(does)
    if HOLE in text or not isinstance(called.argument(does), ast.Constant):
        called.doing.unknown(f"{called.name}() of code that is made when it runs")
    else:
        look_at_python(text, called.doing.line, called.notes)


def imported(does: Does, called: Called) -> None:
    name = called.text(does)
    if HOLE in name:
        called.doing.unknown("a module that is chosen when it runs")
    elif not is_known_module(name):
        called.doing.unknown(f"what the module {name} does")


def program(does: Does, called: Called) -> None:
    called.doing.program(called.text(does), known=False)


def fork(does: Does, called: Called) -> None:
    if called.in_loop:
        called.doing.words = ["fork-bomb"]
        called.doing.note("kill", "this machine: a loop that starts itself over and over")


def _through_shell(called: Called) -> bool:
    given = called.keyword("shell")
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)


def _split(text: str, called: Called) -> None:
    """One text without a shell: the program, or the program and its words."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or HOLE in words[0]:
        called.doing.unknown("a command that is put together when it runs")
    else:
        _command(words, called)


def _command(words: list[str], called: Called) -> None:
    text = " ".join(words).replace(HOLE, "*")
    look_at(Call(words, called.doing.line, text), called.notes)
