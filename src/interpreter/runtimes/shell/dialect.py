"""The protocol of a live bash or zsh: how blocks are sent to it, and how its saved state and variables are read."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from shlex import quote

from interpreter.host.files import Folder, remove
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.state import Variable

# -- files -----------------------------------------------------------------------------------------------------------

# Code can write to the runtime's folder: follow no links, never block, and read bounded amounts.

MAX_FILE_BYTES = 64 * 1024 * 1024  # bytes read from a file


def write_file(path: Path, data: bytes) -> None:
    discard(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)


def read_file(path: Path) -> bytes | None:
    """Read a regular file; None for anything else."""
    try:
        with Folder(path.parent) as folder:
            return folder.read_bytes(path.name, MAX_FILE_BYTES)
    except OSError:
        return None


def discard(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        remove(path)  # a folder has that name


# -- where a block can be cut ----------------------------------------------------------------------------------------

# Shells have no hook to report lines that is both cheap and invisible: a DEBUG trap makes loops ten times slower and
# changes `$_`. So lines that are certainly whole commands are sent one by one; from the first line that may not be one,
# the rest of the block is one piece.

RESERVED = frozenset(
    """if then else elif fi for foreach while until do done case esac in select function time coproc repeat nocorrect
    return break continue exec alias unalias trap emulate""".split()
)
MAX_CUT_LENGTH = 20_000  # characters of a block that is still cut
# Things that would differ between pieces.
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
    """Cut a block into pieces, each with the number of its first line; together they are the block."""
    lines = code.split("\n")
    if len(code) > MAX_CUT_LENGTH or CONNECTED.search(code):
        return [(1, code)]
    starts = [number for number, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"]
    pieces: list[tuple[int, str]] = []
    for number, following in zip(starts, [*starts[1:], None], strict=False):
        line = lines[number - 1]
        begins_syntax = any(word in RESERVED or word.startswith(("[[", "!")) for word in FIRST_WORDS.findall(line))
        if following is None or begins_syntax or not LINE.fullmatch(line):  # it may not be a whole command
            pieces.append((number, "\n".join(lines[number - 1 :])))
            break
        pieces.append((number, "\n".join(lines[number - 1 : following - 1])))
    return pieces or [(1, code)]


# -- its variables, as it writes them --------------------------------------------------------------------------------

# These describe how a shell was started, so other languages don't get them.
OWN = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "TERM", "COLUMNS", "LINES", "LOGNAME"})
_MAX_LENGTH = 100
# `declare -ax NAME=VALUE` in bash, `typeset -g -i NAME=VALUE` and `export NAME=VALUE` in zsh.
_DECLARATION = re.compile(
    r"""^(?:declare|typeset|export)((?:[ ]-\w+|[ ]--)*)[ ](\w+)=
        ( \( (?: [^()'"\\] | "(?:[^"\\]|\\.)*" | \$?'(?:[^'\\]|\\.|'\\'')*' | \\. | \([^()]*\) )* [ ]?\)
        | (?: [^\s'"\\] | "(?:[^"\\]|\\.)*" | \$'(?:[^'\\]|\\.)*' | '[^']*' | \\. )* )$""",
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
_PIECE = re.compile(r"""\$'((?:[^'\\]|\\.)*)'|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.DOTALL)
# The escapes between $' and '.
_ESCAPE = re.compile(rb"(?s)\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))")
SIMPLE = dict(zip(b"abeEfnrtv", b"\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_ELEMENT = re.compile(r"""(?:\[(?:[^\]"']|"(?:[^"\\]|\\.)*")*\]=)?(?:[^\s'"\\]|"(?:[^"\\]|\\.)*"|\$?'[^']*'|\\.)+""")
# Variables that a shell sets itself, or that describe how it was started.
_ITS_OWN = re.compile(
    r"""BASH\w*|COMP_\w+|DIRSTACK|E?UID|E?GID|GROUPS|HOST\w*|IFS|MACHTYPE|OPT(?:ARG|ERR|IND)|OSTYPE|PIPESTATUS|PPID
    |PS[0-9]|(?:OLD)?PWD|SHELL(?:OPTS)?|SHLVL|TERM|UID|_|RANDOM|SRANDOM|LINENO|SECONDS|EPOCH\w+|FUNCNAME|COLUMNS|LINES
    |\w*PAGER|__oi_\w*|argv|path|fpath|cdpath|manpath|module_path|mailpath|watch|psvar|signals|zsh_\w+|ZSH_\w+|TMPPREFIX
    |FPATH|CDPATH|MANPATH|MAILCHECK|NULLCMD|READNULLCMD|TIMEFMT|WORDCHARS|CPUTYPE|VENDOR|USERNAME|LOGNAME|TTY|TTYIDLE
    |HIST\w+|KEYTIMEOUT|LISTMAX|DIRSTACKSIZE|FUNCNEST|TRY_BLOCK_\w+|LOGCHECK|BAUD""",
    re.VERBOSE,
)


def exported(listing: bytes) -> dict[str, str]:
    """Parse the exported variables of a listing: bash's `declare -p`, or NAME=VALUE with a NUL after each."""
    text = os.fsdecode(listing)
    if "\0" in text:
        # An interrupt may make zsh print something twice, including a NUL.
        return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
    declarations = [each for each in _DECLARATION.findall(text) if "x" in each[0]]
    # Arrays are left out, because they are never exported to other programs.
    return {name: unquoted(written) for _, name, written in declarations if not written.startswith("(")}


def variables(state: str, environment: dict[str, str]) -> dict[str, tuple[str, str]]:
    typed_texts: dict[str, tuple[str, str]] = {}
    for flags, name, written in _DECLARATION.findall(state):
        if "A" in flags:
            kind, text = "map", written
        elif "a" in flags or written.startswith("("):
            kind, text = "array", written
        else:
            kind, text = "integer" if "i" in flags else "string", unquoted(written)
        if not _ITS_OWN.fullmatch(name) and environment.get(name) != text:
            typed_texts[name] = (kind, text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return typed_texts


def without(state: str, environment: dict[str, str]) -> str:
    """Remove variables from a state that are as the environment had them: later runs have a different environment."""

    def kept(match: re.Match[str]) -> str:
        _, name, written = match.groups()
        return ":" if name in environment and unquoted(written) == environment[name] else match[0]

    return _DECLARATION.sub(kept, state)


def listed(typed_texts: dict[str, tuple[str, str]]) -> list[Variable]:
    rows = []
    for name, (kind, text) in typed_texts.items():
        line = " ".join(text.split())
        preview = line if len(line) <= _MAX_LENGTH else line[: _MAX_LENGTH - 3] + "..."
        if kind in ("array", "map"):
            rows.append(Variable(name, kind, preview, str(len(_ELEMENT.findall(text[1:-1])))))
        else:
            rows.append(Variable(name, kind, preview, str(len(text)), len(text.encode("utf-8", "replace"))))
    return rows


def unquoted(written: str) -> str:
    parts = []
    for ansi, single, double, escaped, bare in _PIECE.findall(written):
        if ansi:
            parts.append(os.fsdecode(_ESCAPE.sub(unescaped, os.fsencode(ansi))))
        elif double:
            parts.append(re.sub(r'\\([\\"$`])|\\\n', lambda match: match[1] or "", double))
        else:
            parts.append(single or escaped or bare)
    return "".join(parts)


def unescaped(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if octal or hexadecimal:
        return bytes([int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)])
    return bytes([SIMPLE.get(other[0], other[0])])


# -- to and from the shell -------------------------------------------------------------------------------------------

HERE = Path(__file__).parent
WHOLE = b"# whole\n"  # the driver ends a completely saved state with this
# The last line of every piece but the last. If an error skips it, that piece is the last of its block.
REACHED = "\n__oi_reached=$?\n"
PIECE = '\\. "${{__oi_over:-{file}}}" <>{stdin} 2>&1'
# bash gets a block as one line: it may crash on the line after a file that ends inside $(. zsh gets it enclosed: an
# error or an interrupt would end the whole shell unless it is caught. Its EXIT trap can be seen and set outside
# functions only. With `&& :` a call is safe under errexit.
BLOCK = {
    "bash": '{pieces}; __oi_status=$? __oi_block=; __oi_leave {block} "$@" && :',
    "zsh": "{{ {pieces}; }} always {{ __oi_status=$? __oi_block= TRY_BLOCK_ERROR=0 TRY_BLOCK_INTERRUPT=0; }}\n"
    'builtin trap >|$__oi_folder/trap; __oi_leave {block} "$@" && :; builtin trap __oi_exit EXIT',
}
START = {
    "bash": "__oi_start {folder} && :",
    "zsh": "builtin trap >|{folder}/trap; __oi_start {folder} && :; builtin trap __oi_exit EXIT",
}


class ShellDialect:
    """Encodes frames for one runtime's shell, and finds its saved states."""

    def __init__(self, shell: str, env: dict[str, str], rc: bool = False, state: bytes | None = None) -> None:
        self.shell = shell
        self.kind = "zsh" if Path(shell).name == "zsh" else "bash"
        self._term, self._rc = env["TERM"], rc
        # The variables that it exports, as last seen.
        self._known = {name: value for name, value in env.items() if name not in OWN}
        self._sent: dict[str, str | None] = {}
        self._listing = b""
        self._state = state  # the initial state; later ones are in the runtime's folder
        self._block = 0
        self._files: list[Path] = []
        self._chosen: tuple[int, int] | None = None  # (a, b): after block a, continue with the state of block b
        self.kept = 2  # states to keep: the last one is incomplete while it is written

    # -- to the shell ----------------------------------------------------------------------------------------

    def greet(self, folder: Path) -> bytes:
        """Give a new shell our functions, and the state that the last one saved."""
        driver, place = quote(str(HERE / f"driver.{self.kind}")), quote(str(folder))
        lines = ["exec >/dev/null 2>&1", f"\\. {driver}", f"__oi_folder={place}"]
        state = folder / "state.0"
        if self._block == 0 and self._state is not None:
            write_file(state, self._state)
        elif self._block == 0 and self._rc:
            snapshot = f"\\. {driver}; __oi_snapshot {place} {quote(str(state))}"
            lines.append(f"{quote(self.shell)} -i -c {quote(snapshot)} </dev/null")
        else:
            state = self.last_state(folder) or state
        if state.name == "state.exit":
            state = self.settle(folder)
        lines += [f"\\. {quote(str(state))} && :", START[self.kind].format(folder=place), "__oi_ready && :"]
        return script(lines)

    def encode(self, frame: Frame, folder: Path) -> bytes:
        """Encode a block, with what other languages changed before it. A query is answered once the state is saved."""
        if frame["op"] == "inspect":
            answer = f'{{"event":"answer","query":{frame["query"]}}}'
            return script([f"builtin printf '%s\\n' {quote(answer)} >&0 && :"])
        if frame["op"] != "run":
            return b""
        self._block = frame["block"]
        lines = [assignment(name, value) for name, value in frame.get("env", {}).items()]
        if frame["term"] != self._term:
            self._term = frame["term"]
            lines.append(assignment("TERM", self._term))
        if "cwd" in frame:
            lines.append(f"builtin cd -- {quote(frame['cwd'])} || :")
        pieces = [f"__oi_enter {self._block} {quote(frame['tty'])} && :"]
        for line, file in self._write(frame, folder):
            if frame["active_lines"]:
                pieces.append(f"__oi_at {self._block} {line} && :")
            in_quotes = re.sub(r'([\\"$`}])', r"\\\1", str(file))
            pieces.append(PIECE.format(file=in_quotes, stdin=quote(frame["stdin"])))
        lines.append(BLOCK[self.kind].format(pieces="; ".join(pieces), block=self._block))
        return script(lines)

    def _write(self, frame: Frame, folder: Path) -> list[tuple[int, Path]]:
        """Write the block's pieces to files, replacing the last block's.

        Returns the first line and the file of each.
        """
        with contextlib.suppress(OSError):
            folder.chmod(0o700)  # code may have made it unreadable
        for file in self._files:
            discard(file)
        code = frame["code"]
        pieces = cut(code) if frame["active_lines"] else [(1, code)]
        if len(pieces) == 1:
            pieces = [(pieces[0][0], code)]
        else:  # the shell counts lines from the start of a file
            pieces = [(line, "\n" * (line - 1) + piece) for line, piece in pieces]
            pieces[:-1] = [(line, text + REACHED) for line, text in pieces[:-1]]
        chosen = state_file(folder, self._chosen[1]) if self._chosen else None
        old_states = [state_file(folder, number) for number in state_numbers(folder)[: -self.kept]]
        self._files = [folder / "exports", *(old for old in old_states if old != chosen)]
        written: list[tuple[int, Path]] = []
        for line, text in pieces:
            file = folder / (f"block{self._block}" if not written else f"block{self._block}.{line}")
            write_file(file, text.encode("utf-8", "surrogateescape"))
            written.append((line, file))
        self._files += [file for _, file in written]
        return written

    def plain(self, folder: Path, text: str) -> str:
        """Replace the name of a block's file in the shell's messages by the shell's own name."""
        if str(folder) not in text:
            return text
        return re.sub(rf"{re.escape(str(folder))}/block\d+(?:\.\d+)?(?=:)", self.kind, text)

    # -- from the shell --------------------------------------------------------------------------------------

    def changes(self, folder: Path, sent: dict[str, str | None]) -> Frame:
        """Return the directory and the changed exported variables (None: unset) that the last block left.

        `sent` has the variables that the shell got from the host. Empty if the shell could not report.
        """
        report = read_file(folder / "exports")
        if report is None:
            return {}
        place, _, listing = report.partition(b"\0")
        cwd = os.fsdecode(place.removesuffix(b"\n"))
        if (listing, sent) == (self._listing, self._sent):
            return {"cwd": cwd, "env": {}}
        now = {name: value for name, value in exported(listing).items() if name not in OWN}
        before = {name: value for name, value in {**self._known, **sent}.items() if value is not None}
        changed: dict[str, str | None] = {name: None for name in before if name not in now}
        changed |= {name: value for name, value in now.items() if before.get(name) != value}
        self._listing, self._known, self._sent = listing, now, {**sent, **changed}
        return {"cwd": cwd, "env": changed}

    def last_state(self, folder: Path) -> Path | None:
        """Find the newest completely saved state, or one that was chosen since."""
        numbers, chosen = state_numbers(folder), None
        if self._chosen is not None:
            numbers = [number for number in numbers if number > self._chosen[0]]
            chosen = state_file(folder, self._chosen[1])
        saved = [folder / "state.exit", *(state_file(folder, number) for number in reversed(numbers))]
        return next((path for path in saved if is_whole(path)), chosen)

    def saved(self, folder: Path) -> bytes | None:
        """Read the last saved state; None if there is none."""
        state = self.last_state(folder)
        return read_file(state) if state is not None else None

    # -- states ----------------------------------------------------------------------------------------------

    def take_over(self, folder: Path, number: int, state: bytes) -> None:
        """Continue with a state as if this block had left it."""
        self._block = number
        write_file(state_file(folder, number), state)

    def settle(self, folder: Path) -> Path:
        """Turn the state that a shell saved when it exited into the state after its last block."""
        with contextlib.suppress(OSError):
            (folder / "state.exit").replace(state_file(folder, self._block))
        return state_file(folder, self._block)

    def choose(self, number: int) -> None:
        """Let the next shell start from the state after this block."""
        self._chosen = (self._block, number)


def state_file(folder: Path, number: int) -> Path:
    return folder / f"state.{number}"


def state_numbers(folder: Path) -> list[int]:
    """List the blocks whose states are saved, oldest first."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(int(name[6:]) for name in names if re.fullmatch(r"state\.[0-9]{1,18}", name))


def script(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def assignment(name: str, value: str | None) -> str:
    return f"unset {name} || :" if value is None else f"export {name}={quote(value)} || :"


def is_whole(path: Path) -> bool:
    return (read_file(path) or b"").endswith(WHOLE)
