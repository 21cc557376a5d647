"""Builtins of the shell that do more than they seem: they run what they are given, or change what a name means."""

from __future__ import annotations

import re
from collections.abc import Iterator

from interpreter.policy.analysis.arguments import Arguments
from interpreter.policy.analysis.handlers import Call, handles
from interpreter.policy.analysis.notes import Doing, Notes
from interpreter.policy.analysis.programs_starting import nested

# A change of these changes what other commands do.
TELLING = re.compile(
    r"PATH|IFS|ENV|SHELLOPTS|BASH\w*|LD_\w+|DYLD_\w+|PYTHON\w+|PERL\w+|RUBY\w+|NODE_\w+|GIT_\w+|PROMPT_COMMAND|PS[0-4]"
    r"|(VISUAL|EDITOR|PAGER|MANPAGER|BROWSER)"
)
# Where the shell expects a variable or a number, it runs the command in such an index, quoted or not.
_INDEX = re.compile(r"\w\[[^\]]{0,200}(\$\(|`)")


def runs_an_index(text: str) -> bool:
    """Does the text hold a command in an index, which runs when the text is taken for a variable?"""
    return bool(_INDEX.search(text))


def note_changed(name: str, doing: Doing) -> None:
    """A variable is set; some change what the commands after it do."""
    if TELLING.fullmatch(name):
        doing.unknown(f"{name} is changed, and with it what commands do")


@handles("read", "mapfile", "readarray", "getopts", "printf", "let", "test", "[", "wait")
def fills(call: Call, doing: Doing, notes: Notes) -> None:
    for name in _filled(call):
        note_changed(name, doing)
    if any(map(runs_an_index, call.arguments)):
        doing.unknown("a command in an index")
    for code in Arguments(call.arguments, "-C").value("-C") if call.words[0] in ("mapfile", "readarray") else ():
        nested(code, call, notes)


def _filled(call: Call) -> Iterator[str]:
    """The names that may be those of variables which it sets."""
    if call.words[0] == "printf":
        yield from Arguments(call.arguments, "-v").value("-v")
    elif call.words[0] not in ("let", "test", "["):
        yield from call.arguments


@handles("hash", "enable", "compgen", "complete", "jobs", "bind", "history", "fc")
def changes_names(call: Call, doing: Doing, notes: Notes) -> None:
    """Without these options they only tell something."""
    name, arguments = call.words[0], Arguments(call.arguments, "-p -f -C -F -W -x -w -a")
    for option in {"hash": "-p", "enable": "-f -n", "bind": "-x", "fc": "-s -e"}.get(name, "").split():
        if arguments.has(option):
            doing.unknown(f"{name} {option} changes what commands do")
    if name in ("compgen", "complete", "jobs"):
        for code in arguments.value("-C", "-F", "-W", "-x"):
            nested(code, call, notes)
    if name == "history":
        doing.write(*arguments.value("-w", "-a"))


@handles("alias")
def alias(call: Call, doing: Doing, notes: Notes) -> None:
    for word in call.arguments:
        _, equals, code = word.partition("=")
        if equals:
            doing.unknown("an alias changes what a command means")
            nested(code, call, notes)
