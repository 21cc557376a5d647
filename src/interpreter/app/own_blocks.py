"""Code that the user runs in the runtimes that the model uses: a line, a block or a file."""

from __future__ import annotations

import os
from collections.abc import Generator
from dataclasses import replace

from interpreter.api import OpenInterpreter
from interpreter.app import perform
from interpreter.errors import UsageError
from interpreter.host import files
from interpreter.messages import Fold
from interpreter.session import ActionContext, Actor, Block, Do, Event, Ids, Publisher


class OwnBlock(Block):
    """A block that the user runs; if it is shared, the model sees it and its output."""

    def __init__(self, interpreter: OpenInterpreter, language: str, code: str, fold: Fold | None) -> None:
        super().__init__(language, code)
        self._interpreter, self._fold = interpreter, fold

    def prepare(self, context: ActionContext) -> None:
        super().prepare(context)
        if self._fold is not None:
            self._interpreter.messages.append(
                {"role": "user", "type": "code", "format": self.language, "content": self.code}
            )
            self._interpreter.journal.announce(self.ids, self._fold)


def run_own_block(
    interpreter: OpenInterpreter, language: str, code: str, shared: bool | None = None, actor: Actor | None = None
) -> Generator[Event, None, str]:
    """Run the user's code without asking; `shared` shows it to the model, None does as `share_commands` says.

    `actor` is a client that runs it for the user. Returns how it ended: done, error, interrupted, ...
    """
    shared = interpreter.share_commands if shared is None else shared
    session, journal = interpreter.session, interpreter.journal
    fold = Fold(lambda: interpreter.messages, interpreter.max_output) if shared else None
    block = OwnBlock(interpreter, language, code, fold)
    ids = Ids(actor=(actor or interpreter.user).id)
    publisher = Publisher(session.log, ids, fold, journal if shared else None)
    try:
        yield from session.perform(block, actor or interpreter.user, publisher=publisher)
        yield from publisher.close()
    finally:
        if fold is not None:
            fold.close()
            journal.announce(ids, fold)
    return block.outcome


def run_file(interpreter: OpenInterpreter, path: str) -> Generator[Event, None, str]:
    """Run a file in the runtime of its language; a relative path is relative to where the runtimes are."""
    path = os.path.join(interpreter.computer.context.folder_here, os.path.expanduser(path))
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    known = interpreter.computer.languages if ending else []
    names = [each.name.lower() for each in known if ending in (each.file_extension, *each.aliases)]
    if not names:
        raise UsageError(f"No language runs files like {os.path.basename(path)}.")
    try:
        code = files.read_bytes(path).decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Could not read {path}: {getattr(error, 'strerror', None) or error}.") from error
    return (yield from run_own_block(interpreter, names[0], code))


def change_folder(interpreter: OpenInterpreter, folder: str) -> Generator[Event, None, str]:
    """Make all runtimes continue in another folder and return its path."""
    shared = interpreter.computer.context
    if shared.elsewhere:
        name = interpreter.computer.machine.name
        raise UsageError(f"This session works on {name}. To change the folder there: !cd FOLDER")
    path = os.path.normpath(os.path.join(shared.cwd, os.path.expanduser(folder)))
    if not os.path.isdir(path):
        raise UsageError(f"There is no folder {path}.")
    yield from perform(interpreter, Do("cd", lambda: setattr(shared, "cwd", path)))
    return path


def move_workspace(interpreter: OpenInterpreter) -> Generator[Event, None, None]:
    """Make the current folder the workspace, which undo and the sandbox cover; an error if no sandbox can."""
    shared = interpreter.computer.context
    if shared.elsewhere:
        raise UsageError("The workspace on another machine is part of its address: ssh://HOST/FOLDER")
    if (sandbox := interpreter.sandbox_now()) is not None:
        from interpreter.sandbox.places import places

        places(replace(sandbox, workspace=shared.cwd), [], ())
    yield from perform(interpreter, Do("workspace", lambda: setattr(interpreter, "workspace", shared.cwd)))


# -- typed at a prompt ---------------------------------------------------------------------------------------------

SIGNS = {"python": ">>> ", "shell": "!"}  # what the user types before such a block


def python_of(text: str) -> str:
    """Strip `>>>`, and the prompts of a pasted session, from the code."""
    lines = [line[4:] if line.startswith((">>> ", "... ")) else line for line in text.strip("\n").split("\n")]
    lines = ["" if line.rstrip() in (">>>", "...") else line for line in lines]
    first = lines[0].removeprefix(">>>")
    return "\n".join([first.lstrip() if first != lines[0] else first, *lines[1:]]).strip("\n")


def is_unfinished(text: str) -> bool:
    """Check whether code after `>>>` continues on the next line, as at Python's prompt."""
    if not text.lstrip().startswith(">>>"):
        return False
    from codeop import compile_command

    ends = text.endswith(("\n", "\n..."))
    try:
        return compile_command(python_of(text.lstrip()) + "\n" * ends) is None
    except (SyntaxError, ValueError, OverflowError):
        return False  # run it: Python reports the error, or IPython accepts it
