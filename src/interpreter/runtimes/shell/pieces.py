"""Where a block can be cut without changing what it does, so that its lines can be reported as they run.

A shell has no hook for this that is both cheap and invisible: a DEBUG trap makes loops ten times slower and
changes `$_`. So lines that plainly stand for themselves are handed over one by one; from the first line that
may not, the rest of the block is one piece.
"""

from __future__ import annotations

import re

RESERVED = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "foreach",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "in",
        "select",
        "function",
        "time",
        "coproc",
        "repeat",
        "nocorrect",
        "return",
        "break",
        "continue",
        "exec",
        "alias",
        "unalias",
        "trap",
        "emulate",
    ]
)
LONGEST = 20_000  # characters of a block that is looked at
# What is not the same from one piece to the next.
CONNECTED = re.compile(r"\$_\b|\$\{?_\}|pipestatus|BASH_|FUNCNAME|LINENO|RANDOM|funcstack", re.IGNORECASE)
VARIABLE = r"\$\w+|\$\{\w+\}"
QUOTED = rf"""'[^'\n]*'|"(?:[\w\s./:=,@%+~^*?\[\]()<>|&;!'{{}}#-]|{VARIABLE})*\""""
WORD = rf"(?:[\w./:=,@%+~^*?\[\]-]|{VARIABLE}|\$\?|{QUOTED})+"
REDIRECTION = rf"(?:\d?>{{1,2}}&?[ ]*{WORD}|&>[ ]*{WORD}|<[ ]*{WORD})"
COMMAND = rf"{WORD}(?:[ \t]+(?:{REDIRECTION}|{WORD}))*"
THEN = r"[ \t]*(?:;|&&|\|\|?)[ \t]*"
LINE = re.compile(rf"[ \t]*{COMMAND}(?:{THEN}{COMMAND})*[ \t]*;?[ \t]*(?:\#.*)?", re.ASCII)
FIRST_WORDS = re.compile(r"(?:^|;|&&|\|\|?)[ \t]*([\w\[!-]+)", re.ASCII)


def cut(code: str) -> list[tuple[int, str]]:
    """The pieces of a block, each with the number of its first line; together they are the block."""
    lines = code.split("\n")
    if len(code) > LONGEST or CONNECTED.search(code):
        return [(1, code)]
    starts = [number for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"]
    pieces: list[tuple[int, str]] = []
    for place, number in enumerate(starts):
        following = starts[place + 1] if place + 1 < len(starts) else None
        if following is None or not stands_alone(lines[number - 1]):
            pieces.append((number, "\n".join(lines[number - 1 :])))
            break
        pieces.append((number, "\n".join(lines[number - 1 : following - 1])))
    return pieces or [(1, code)]


def stands_alone(line: str) -> bool:
    """Whether the line is a whole command, for certain."""
    if not LINE.fullmatch(line):
        return False
    return not any(word in RESERVED or word.startswith(("[[", "!")) for word in FIRST_WORDS.findall(line))
