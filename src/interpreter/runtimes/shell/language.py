"""The shell in a live runtime, bash or zsh, and its pseudo-terminals: one per block's output, one for the keyboard."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

if sys.platform != "win32":
    import fcntl
    import termios

from interpreter.errors import NotRestorableError, RuntimeStartError, UsageError
from interpreter.messages import Chunk
from interpreter.runtimes import built_in
from interpreter.runtimes.block import Channels, OutputChannel, console
from interpreter.runtimes.launch import KEYBOARD, Launch, RuntimeSandbox, path_of, program_version
from interpreter.runtimes.live import HasContext, LiveLanguage, Run
from interpreter.runtimes.protocol import Frame
from interpreter.runtimes.runtime import Runtime
from interpreter.runtimes.shell.dialect import (
    ShellDialect,
    is_whole,
    listed,
    read_file,
    state_file,
    state_numbers,
    variables,
    without,
)
from interpreter.runtimes.state import (
    SAVE_TIMEOUT,
    Completions,
    Restored,
    Saved,
    Saving,
    TableQuery,
    Text,
    Value,
    Variable,
    Window,
)

Size = tuple[int, int]


def resize(fd: int, size: Size) -> None:
    columns, lines = size
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class ShellTerminal(OutputChannel):
    """The controlling terminal of a shell: keys go in, prompts and the echo come out."""

    order = 0  # typed text comes before the output that it causes

    def __init__(self) -> None:
        ours, self.theirs = os.openpty()
        self._modes = termios.tcgetattr(self.theirs)
        self._modes[1] &= ~termios.OPOST
        self._modes[6][termios.VSUSP] = b"\0"  # a program stopped by Ctrl-Z could not be continued
        self.path = os.ttyname(self.theirs)
        self._connected = True
        super().__init__(None, ours, "stdout")  # the runtime sets its block

    def prepare(self, size: Size) -> None:
        """Drop the keys that the last block left, and reset the modes that it set."""
        termios.tcsetattr(self.theirs, termios.TCSANOW, self._modes)
        termios.tcflush(self.theirs, termios.TCIFLUSH)
        resize(self.fd, size)

    def echo_off(self) -> bool:
        """Check whether the running program hides its input."""
        return self._connected and not termios.tcgetattr(self.theirs)[3] & termios.ECHO

    def hang_up(self) -> None:
        """Disconnect, because the user is no longer at the keyboard; the reader finds the end and closes it."""
        if self._connected:
            self._connected = False
            os.close(self.theirs)

    def ended(self) -> None:
        self.hang_up()
        super().ended()


PAGERS = ("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "AWS_PAGER", "PSQL_PAGER")
SPOKEN = ("bash", "zsh")
SYNTAX_ERROR = 2
FAREWELL = b"builtin trap - EXIT; exit\n"  # saves the state, without the user's EXIT trap
SAVED_BY = "# saved by "
NOT_KEPT = "A shell block is running, and the state before it is no longer available."
SAVE_MOMENT = 0.01  # seconds
SAVE_LIMIT = 5.0  # seconds: a shell that was killed in the middle never saves its state
VARIABLE = re.compile(r"\$\{?(\w*)\Z")
STARTER = Path(__file__).parent.with_name("python") / "driver" / "start.py"  # enters an overlay


class Shell(built_in.Shell, LiveLanguage):
    """Keeps directory, variables, functions, aliases and options from block to block, even after an `exit`."""

    uses_environment = True

    _dialect: ShellDialect
    _keyboard: ShellTerminal | None = None
    _state: bytes | None = None  # the state of a runtime that was moved to the background
    _state_in: RuntimeSandbox | None = None  # the sandbox of that state
    _entrance: str | None = None  # the socket of an overlay that the shell enters before it starts

    def __init__(self, computer: HasContext | None = None) -> None:
        super().__init__(computer)
        self._blocks: dict[int, int] = {}  # by the number of a state, the block that left it

    def version(self) -> str | None:
        shell = which_shell(self.context.shell)
        number = shell and program_version(shell, self.context.containment)
        return f"{Path(shell).name} {number}" if shell and number else None

    def launch(self) -> Launch:
        shell = which_shell(self.context.shell)
        if shell is None:
            wanted = self.context.shell
            raise RuntimeStartError(
                self.name, f"{wanted} is not a usable bash or zsh." if wanted else "bash is not installed."
            )
        env = self._environment()
        self._dialect = ShellDialect(shell, env, self.context.shell_rc, self.own_state())
        command = [shell, *(["--norc", "--noprofile"] if self._dialect.kind == "bash" else ["-f", "-s"])]
        if self._entrance is not None:
            command = [sys.executable, "-I", "-S", str(STARTER), self._entrance, *command]
        return Launch(["stdin", *command], self._dialect, env=env, cwd=self.context.cwd)

    def _environment(self) -> dict[str, str]:
        env = {**self.context.environment(), **dict.fromkeys(PAGERS, "cat"), "TERM": self._terminal_kind()}
        # These two name files that a shell without a prompt would run when it starts.
        return {name: value for name, value in env.items() if name not in ("BASH_ENV", "ENV")}

    def start(self) -> Runtime:
        begins = self.runtime is None
        runtime = super().start()
        if begins and self.own_state() is not None:
            self.known_cwd = None  # the state has its own directory
        return runtime

    # -- blocks ------------------------------------------------------------------------------------------

    def channels(self) -> Channels:
        """Open a terminal to write to, so that programs stream line by line; their bytes arrive unchanged."""
        ours, theirs = os.openpty()
        modes = termios.tcgetattr(theirs)
        modes[1] &= ~termios.OPOST
        modes[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
        termios.tcsetattr(theirs, termios.TCSANOW, modes)
        resize(ours, self.context.size)
        plain = partial(self._dialect.plain, self.start().folder)
        return Channels(reads=[(ours, "stdout")], held=[theirs], fields={"tty": os.ttyname(theirs)}, plain=plain)

    def fields(self) -> Frame:
        """Provide a controlling terminal if the user can type, and none otherwise."""
        runtime, stdin = self.start(), os.devnull
        if self.context.keyboard != (self._keyboard is not None):
            runtime.retire(FAREWELL)  # a process keeps its first controlling terminal
            if self._keyboard is None:
                self._keyboard = ShellTerminal()
                runtime.set_terminal(self._keyboard, [self._keyboard.theirs])
            else:
                runtime.set_terminal(None, [])
                self._keyboard.hang_up()
                self._keyboard = None
        if self._keyboard is not None:
            self._keyboard.prepare(self.context.size)
            stdin = self._keyboard.path if runtime.launch.containment is None else path_of(KEYBOARD)
        return {"stdin": stdin, "term": self._terminal_kind(), "active_lines": self.context.active_lines}

    def _terminal_kind(self) -> str:
        return "xterm-256color" if self.context.colors else "dumb"

    def apply_changes(self, event: Frame) -> None:
        assert self.runtime is not None and self.runtime.block is not None
        super().apply_changes({**event, **self._dialect.changes(self.runtime.folder, self.context.exported)})
        code = self.runtime.block.code
        if event.get("exit_code") == SYNTAX_ERROR and code.count("(") > code.count(")"):
            self.runtime.retire(FAREWELL)  # bash 5.2 damages its own memory when a file ends inside $(

    def exited(self, event: Frame) -> Iterator[Chunk]:
        """Start the next shell where this one stopped, or where the block before left it."""
        if event["startup"]:
            yield from super().exited(event)
            return
        assert self.runtime is not None
        changes, code = self._dialect.changes(self.runtime.folder, self.context.exported), event["code"]
        super().apply_changes(changes)
        if not changes:
            self._blocks[self.present] = self._blocks[self.state_before]  # the block left no state
        ended = "error" if code else "done"
        if event["why"] == "timed_out":
            ended = "timed_out"
        elif event["why"] == "interrupted" and code in (-signal.SIGINT, 128 + signal.SIGINT):
            ended = "interrupted"  # it was still starting, so nothing is lost
        elif code < 0 or event["why"]:
            ended = "died" if code < 0 else "interrupted"
        if ended != "interrupted" and (code < 0 or not changes):
            kept = "what it had" if changes else "what it had before this block"
            yield console(f"The shell ended ({event['how']}). A new one continues with {kept}.\n")
        yield self.closing(code, ended)

    # -- the keyboard ------------------------------------------------------------------------------------

    def send_keys(self, keys: bytes) -> None:
        if self._keyboard is not None:
            with contextlib.suppress(OSError):  # unread input is lost, as on any terminal
                os.write(self._keyboard.fd, keys)

    def echo_off(self) -> bool:
        """Check whether typed text should be hidden, such as a password."""
        return self._keyboard is not None and self._keyboard.echo_off()

    # -- queries between blocks --------------------------------------------------------------------------

    def variables(self) -> list[Variable]:
        return listed(self._variables())

    def look(
        self,
        name: str,
        rows: Window = (0, 50),
        columns: Window = (0, 50),
        view: TableQuery | None = None,
        again: bool = False,
    ) -> Value:
        variables = self._variables()
        if view is not None:
            raise UsageError("The shell has no tables to sort, filter or export.")
        if name.lstrip("$") not in variables:
            raise UsageError(f"No block has set {name}.")
        return Text(*variables[name.lstrip("$")])

    def complete(self, code: str, cursor: int) -> Completions:
        """Complete the names of variables after a dollar sign."""
        match = VARIABLE.search(code[:cursor])
        if match is None or self.runtime is None or self.runtime.busy:
            return Completions(cursor)
        names = sorted({**self.context.visible_environment(), **self._variables()})
        return Completions(match.start(1), [(name, "") for name in names if name.startswith(match[1])])

    def _variables(self) -> dict[str, tuple[str, str]]:
        state = self._present_state()
        if state is None:
            return {}
        env = self.runtime.launch.env if self.runtime is not None else self._environment()
        return variables(os.fsdecode(state), {**env, "TERM": self._terminal_kind()})

    # -- states ------------------------------------------------------------------------------------------

    @property
    def state(self) -> int | None:
        return self.present if self.context.snapshots > 0 else None

    def points(self) -> list[int]:
        if self.runtime is None:
            return []
        folder, earlier = self.runtime.folder, [each for each in self._blocks.items() if each[0] != self.present]
        return [state for state, number in earlier if number == 0 or is_whole(state_file(folder, number))]

    def restore(self, state: int) -> Restored:
        """Start the next block in a new shell with an earlier state; background jobs keep running."""
        if state == self.present:
            return Restored()
        self.check_idle("A shell block is running, so its session can't be restored now.")
        runtime = self.runtime
        if runtime is None or state not in self.points():
            raise NotRestorableError("That state of the shell is no longer available.")
        self._note_place()
        if runtime.alive:
            self.query(
                runtime, {"op": "inspect"}, SAVE_TIMEOUT
            )  # after the answer, the state of the last block is saved
            runtime.retire(FAREWELL)
        self._dialect.settle(runtime.folder)
        self._dialect.choose(self._blocks[state])
        self._return_to(state)
        return Restored()

    def _known_states(self) -> Iterable[int]:
        return self._blocks  # checking whether each is complete would cost more than the block

    def leave_state(self) -> int:
        before = super().leave_state()
        assert self.runtime is not None
        self._dialect.kept = self.context.snapshots + 2
        oldest = min(state_numbers(self.runtime.folder), default=0)
        self._blocks = {state: number for state, number in self._blocks.items() if number == 0 or number >= oldest}
        self._blocks.setdefault(before, 0)
        self._blocks[self.present] = self.runtime.next_number
        return before

    @property
    def contained_in(self) -> RuntimeSandbox | None:
        return self._state_in if self.runtime is None else super().contained_in

    def own_state(self) -> bytes | None:
        """Return the state that a new shell starts from, unless it is from another sandbox."""
        return self._state if self._state_in is self.context.containment else None

    def has_begun(self) -> bool:
        return self._state is not None or super().has_begun()

    def hand_over(self, other: Shell, before: int | None) -> Restored:
        """Give the saved state: a new shell starts from there; background jobs stay with this one."""
        state = self._present_state() if before is None else self._state_before_block(before)
        other._state, other._state_in = state, other.context.containment
        return Restored()

    def _state_before_block(self, before: int) -> bytes | None:
        """Read the state that the last finished block left, without a query: the shell is busy."""
        runtime, number = self.runtime, self._blocks.get(before)
        if runtime is None or number is None:
            raise NotRestorableError(NOT_KEPT)
        path = state_file(runtime.folder, number)
        if number == 0 and not path.exists():
            return self._state
        end = time.monotonic() + SAVE_LIMIT
        while not is_whole(path):  # the shell saves it after it has said that the block is done
            if runtime.block is None or runtime.block.ended.wait(SAVE_MOMENT) or time.monotonic() > end:
                break
        state = read_file(path) if is_whole(path) else None
        if state is None:
            raise NotRestorableError(NOT_KEPT)
        return state

    def _present_state(self) -> bytes | None:
        has_run = self.runtime is not None and self.runtime.block is not None
        return self.saved_state() if has_run else self._state

    def saved_state(self) -> bytes | None:
        """Return what a new shell needs to continue after the last block of this one; None if there is none."""
        runtime = self.runtime
        if runtime is None or runtime.block is None:
            return None
        if runtime.alive:
            self.query(
                runtime, {"op": "inspect"}, SAVE_TIMEOUT
            )  # after the answer, the state of the last block is saved
        return self._dialect.saved(runtime.folder)

    def save(self, most: int, seconds: float) -> Saving | None:
        """Save variables, functions, aliases and options, but not what each run gets from its environment."""
        runtime = self.runtime
        if runtime is None or runtime.block is None or runtime.is_running_block:
            return None
        is_saved = not runtime.alive or runtime.query({"op": "inspect"}, seconds) is not None
        state = self._dialect.saved(runtime.folder) if is_saved else None
        if state is None:
            return None
        kept = without(os.fsdecode(state), runtime.launch.env)
        data = os.fsencode(f"{SAVED_BY}{self._dialect.kind}\n{kept}")
        saved = Saved(data, sorted(self._variables())) if len(data) <= most else None
        return lambda: saved

    def load(self, data: bytes) -> Restored:
        first, _, state = data.partition(b"\n")
        kind = os.fsdecode(first).removeprefix(SAVED_BY)
        if Path(which_shell(self.context.shell) or "").name != kind:
            raise NotRestorableError(f"Shell: the variables were saved by {kind}, and another shell runs now.")
        if self.runtime is None:
            self._state, self._state_in = state, self.context.containment
        else:
            self.take_over(state, "")
        return Restored()

    def take_over(self, state: bytes, code: str) -> None:
        """Continue with a state as if a block of this shell had left it."""
        runtime = self.start()
        runtime.retire(FAREWELL)
        self._dialect.settle(runtime.folder)
        self.state_before = self.leave_state()
        self._dialect.take_over(runtime.folder, runtime.add_finished(code).number, state)

    def in_overlay(self, entrance: str) -> Shell:
        """Make a shell with this one's state that enters an overlay before it starts; the user cannot type there."""
        other = Shell()
        other.context = replace(self.context, keyboard=False, exported=dict(self.context.exported))
        other._state, other._entrance = self.saved_state() or self.own_state(), entrance
        return other

    # -- ends --------------------------------------------------------------------------------------------

    def _detached(self, run: Run) -> Iterator[Chunk]:
        runtime = run.runtime
        if runtime is self.runtime:
            self._state, self._state_in = self._dialect.saved(runtime.folder), runtime.launch.containment
            self._keyboard = None  # it stays with the background job
            self._blocks.clear()
        yield from super()._detached(run)

    def end_runtime(self) -> None:
        super().end_runtime()
        self._keyboard = self._state = self._state_in = None
        self._blocks.clear()


def which_shell(wanted: str | None) -> str | None:
    """Find the shell that the settings name, else the user's own if it is supported, else bash."""
    if wanted:
        return shutil.which(wanted) if Path(wanted).name in SPOKEN else None
    users = os.environ.get("SHELL", "")
    if Path(users).name in SPOKEN and (program := shutil.which(users)):
        return program
    return shutil.which("bash") or shutil.which("zsh")
