"""How blocks are put to a live bash or zsh, and where its state is between two shells."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from shlex import quote

from interpreter.runtimes import shared_files
from interpreter.runtimes.frames import Frame
from interpreter.runtimes.shell.pieces import cut

HERE = Path(__file__).parent
WHOLE = b"# whole\n"  # how the driver ends a state that was saved to its end
# The last line of every piece but the last: one that an error left early is the last of its block.
REACHED = "\n__oi_reached=$?\n"
PIECE = '\\. "${{__oi_over:-{file}}}" <>{stdin} 2>&1'
# bash gets a block as one line: when a file ends inside $( it may not live through the next line it reads.
# zsh gets it enclosed: an error or an interrupt would end the whole shell unless somebody takes it. Its EXIT trap can
# be seen and set outside functions only. With `&& :` a call is safe under errexit.
BLOCK = {
    "bash": '{pieces}; __oi_status=$? __oi_block=; __oi_leave {block} "$@" && :',
    "zsh": "{{ {pieces}; }} always {{ __oi_status=$? __oi_block= TRY_BLOCK_ERROR=0 TRY_BLOCK_INTERRUPT=0; }}\n"
    'builtin trap >|$__oi_folder/trap; __oi_leave {block} "$@" && :; builtin trap __oi_exit EXIT',
}
START = {
    "bash": "__oi_start {folder} && :",
    "zsh": "builtin trap >|{folder}/trap; __oi_start {folder} && :; builtin trap __oi_exit EXIT",
}


class Dialect:
    """Speaks to one session's shell, and remembers what it said to the last one."""

    def __init__(self, shell: str, term: str, rc: bool = False, state: bytes | None = None) -> None:
        self.shell = shell
        self.kind = "zsh" if Path(shell).name == "zsh" else "bash"
        self._term, self._rc = term, rc
        self._state = state  # to begin with; later it is in the session's folder
        self._block = 0
        self._files: list[Path] = []
        self._chosen: tuple[int, int] | None = None  # after this block, the state of that one was chosen to go on with
        self.kept = 2  # how many states stay: the last one is not whole while it is written

    # -- to the shell ----------------------------------------------------------------------------------------

    def greet(self, folder: Path) -> bytes:
        """A new shell gets our functions, and the state that the last one left."""
        driver, place = quote(str(HERE / f"driver.{self.kind}")), quote(str(folder))
        lines = ["exec >/dev/null 2>&1", f"\\. {driver}", f"__oi_folder={place}"]
        state = folder / "state.0"
        if self._block == 0 and self._state is not None:
            shared_files.write(state, self._state)
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
        """A block, with what the other languages changed before it; a question is whether its state is saved."""
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
            pieces.append(PIECE.format(file=inside_quotes(str(file)), stdin=quote(frame["stdin"])))
        lines.append(BLOCK[self.kind].format(pieces="; ".join(pieces), block=self._block))
        return script(lines)

    def _write(self, frame: Frame, folder: Path) -> list[tuple[int, Path]]:
        """Put the block's pieces into files, instead of the last one's, and say where each begins."""
        for file in self._files:
            file.unlink(missing_ok=True)
        code = frame["code"]
        pieces = cut(code) if frame["active_lines"] else [(1, code)]
        if len(pieces) == 1:
            pieces = [(pieces[0][0], code)]
        else:  # the shell counts lines from the beginning of a file
            pieces = [(line, "\n" * (line - 1) + piece) for line, piece in pieces]
            pieces[:-1] = [(line, text + REACHED) for line, text in pieces[:-1]]
        chosen = state_file(folder, self._chosen[1]) if self._chosen else None
        self._files = [folder / "exports", *(old for old in numbered_states(folder)[: -self.kept] if old != chosen)]
        written: list[tuple[int, Path]] = []
        for line, text in pieces:
            file = folder / (f"block{self._block}" if not written else f"block{self._block}.{line}")
            shared_files.write(file, text.encode("utf-8", "surrogateescape"))
            written.append((line, file))
        self._files += [file for _, file in written]
        return written

    def plain(self, folder: Path, text: str) -> str:
        """What the shell says of a block, with its own name in the place of the file that the block was put into."""
        if str(folder) not in text:
            return text
        return re.sub(rf"{re.escape(str(folder))}/block\d+(?:\.\d+)?(?=:)", self.kind, text)

    # -- from the shell --------------------------------------------------------------------------------------

    def report(self, folder: Path) -> bytes | None:
        """Where the last block left the directory and the exported variables, if it got to say so."""
        try:
            return shared_files.read(folder / "exports")
        except FileNotFoundError:
            return None

    def last_state(self, folder: Path) -> Path | None:
        """The newest state that was saved to its end, or the one that was chosen since."""
        saved = [folder / "state.exit", *reversed(numbered_states(folder))]
        if self._chosen is not None:
            since, chosen = self._chosen
            newer = [path for path in saved if number_of(path) > since]
            return next((path for path in newer if is_whole(path)), state_file(folder, chosen))
        return next((path for path in saved if is_whole(path)), None)

    # -- states ----------------------------------------------------------------------------------------------

    def settle(self, folder: Path) -> Path:
        """What a shell left when it exited is the state after its last block."""
        with contextlib.suppress(FileNotFoundError):
            (folder / "state.exit").replace(state_file(folder, self._block))
        return state_file(folder, self._block)

    def oldest(self, folder: Path) -> int:
        """The block that left the oldest state that is still there; 0 if none has left any."""
        states = numbered_states(folder)
        return int(number_of(states[0])) if states else 0

    def choose(self, number: int) -> None:
        """The next shell goes on with the state after this block."""
        self._chosen = (self._block, number)


def state_file(folder: Path, number: int) -> Path:
    return folder / f"state.{number}"


def number_of(state: Path) -> float:
    """The block that left it; that of an exit is the last."""
    number = state.name.removeprefix("state.")
    return int(number) if number.isdigit() else float("inf")


def numbered_states(folder: Path) -> list[Path]:
    """The states after each block, the oldest first."""
    numbers = (name.removeprefix("state.") for name in os.listdir(folder) if name.startswith("state."))
    return [folder / f"state.{number}" for number in sorted(int(text) for text in numbers if text.isdigit())]


def script(lines: list[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape")


def inside_quotes(text: str) -> str:
    return re.sub(r'([\\"$`}])', r"\\\1", text)


def assignment(name: str, value: str | None) -> str:
    return f"unset {name} || :" if value is None else f"export {name}={quote(value)} || :"


def is_whole(path: Path) -> bool:
    try:
        return shared_files.read(path).endswith(WHOLE)
    except OSError:
        return False
