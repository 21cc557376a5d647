"""The variables of a shell, read from the state that it saves after every block."""

from __future__ import annotations

import re

from interpreter.runtimes.looking import Variable
from interpreter.runtimes.shell import exports

_LONGEST = 100
# `declare -ax NAME=VALUE` of bash, `typeset -g -i NAME=VALUE` and `export NAME=VALUE` of zsh
_DECLARATION = re.compile(
    r"""^(?:declare|typeset|export)((?:[ ]-\w+|[ ]--)*)[ ](\w+)=
        ( \( (?: [^()'"\\] | "(?:[^"\\]|\\.)*" | \$?'(?:[^'\\]|\\.|'\\'')*' | \\. | \([^()]*\) )* [ ]?\)
        | (?: [^\s'"\\] | "(?:[^"\\]|\\.)*" | \$'(?:[^'\\]|\\.)*' | '[^']*' | \\. )* )$""",
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_PIECE = re.compile(r"""\$'((?:[^'\\]|\\.)*)'|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.DOTALL)
_ELEMENT = re.compile(r"""(?:\[(?:[^\]"']|"(?:[^"\\]|\\.)*")*\]=)?(?:[^\s'"\\]|"(?:[^"\\]|\\.)*"|\$?'[^']*'|\\.)+""")
# What a shell sets by itself, and what says how it was started.
_ITS_OWN = re.compile(
    r"""BASH\w*|COMP_\w+|DIRSTACK|E?UID|E?GID|GROUPS|HOST\w*|IFS|MACHTYPE|OPT(?:ARG|ERR|IND)|OSTYPE|PIPESTATUS|PPID
    |PS[0-9]|(?:OLD)?PWD|SHELL(?:OPTS)?|SHLVL|TERM|UID|_|RANDOM|SRANDOM|LINENO|SECONDS|EPOCH\w+|FUNCNAME|COLUMNS|LINES
    |\w*PAGER|__oi_\w*|argv|path|fpath|cdpath|manpath|module_path|mailpath|watch|psvar|signals|zsh_\w+|ZSH_\w+|TMPPREFIX
    |FPATH|CDPATH|MANPATH|MAILCHECK|NULLCMD|READNULLCMD|TIMEFMT|WORDCHARS|CPUTYPE|VENDOR|USERNAME|LOGNAME|TTY|TTYIDLE
    |HIST\w+|KEYTIMEOUT|LISTMAX|DIRSTACKSIZE|FUNCNEST|TRY_BLOCK_\w+|LOGCHECK|BAUD""",
    re.VERBOSE,
)


def variables(state: str, environment: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Type and text of each variable that blocks have set, by its name."""
    found: dict[str, tuple[str, str]] = {}
    for flags, name, written in _DECLARATION.findall(state):
        kind = _kind(flags, written)
        text = written if kind in ("array", "map") else unquoted(written)
        if not _ITS_OWN.fullmatch(name) and environment.get(name) != text:
            found[name] = (kind, text)
    return found


def listed(found: dict[str, tuple[str, str]]) -> list[Variable]:
    return [_variable(name, kind, text) for name, (kind, text) in found.items()]


def _variable(name: str, kind: str, text: str) -> Variable:
    line = " ".join(text.split())
    preview = line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
    if kind in ("array", "map"):
        return Variable(name, kind, preview, str(len(_ELEMENT.findall(text[1:-1]))))
    return Variable(name, kind, preview, str(len(text)), len(text.encode("utf-8", "replace")))


def _kind(flags: str, written: str) -> str:
    if "A" in flags:
        return "map"
    if "a" in flags or written.startswith("("):
        return "array"
    return "integer" if "i" in flags else "string"


def unquoted(written: str) -> str:
    """The value as it is, from the way that the shell writes it."""
    return "".join(_plain(*match.groups()) for match in _PIECE.finditer(written))


def _plain(ansi: str | None, single: str | None, double: str | None, escaped: str | None, bare: str | None) -> str:
    if ansi is not None:
        return exports.unquoted(None, ansi.encode()).decode("utf-8", "replace")
    if double is not None:
        return exports.unquoted(double.encode(), None).decode("utf-8", "replace")
    return single or escaped or bare or ""
