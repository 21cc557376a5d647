"""Magic commands: the lines of a chat that begin with %, ! or >>>.

To add one, write its function into the file of its subject, and a row into `COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, NamedTuple

from interpreter.errors import ConversationFileError, UndoError, UsageError
from interpreter.frontends.terminal import sessions
from interpreter.frontends.terminal.magics import (
    runtimes,
    settings,
    undo,
    workspace,
)
from interpreter.frontends.terminal.render.saved import open_shown

if TYPE_CHECKING:
    from interpreter.api import OpenInterpreter
    from interpreter.frontends.terminal.terminal import Terminal

_NARROW = 70  # columns; below, the words stand under the command


class Command(NamedTuple):
    """A magic command, as %help lists it."""

    name: str
    arguments: str
    help: str
    run: Callable[[Terminal, OpenInterpreter, str], None]


def run(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """Obey a line such as `%verbose true`, `!ls` or `>>> 1 + 1`."""
    try:
        if line.startswith((">>>", "!", "%%")):
            runtimes.run_code(terminal, interpreter, line)
            return
        typed, argument = [*line[1:].split(None, 1), "", ""][:2]
        name = typed.lower()
        known = {row.name: row for row in COMMANDS}
        if name not in known:
            close = get_close_matches(name, known, n=1)
            advice = f"Did you mean %{close[0]}?" if close else "%help lists the commands."
            raise UsageError(f"There is no command %{name}. {advice}")
        known[name].run(terminal, interpreter, argument.strip())
    except UndoError as error:
        terminal.display.line(str(error))
    except (UsageError, ConversationFileError) as error:
        terminal.display.line(str(error), "error")


def _help(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    seen = "the model sees it" if interpreter.share_commands else "the model does not see it"
    rows = [
        ("!command", f"run a shell command in the model's session; {seen}"),
        (">>> code", f"run Python in the model's session; {seen}"),
        ("%% command", "run a shell command; the model does not see it"),
        *((f"%{row.name} {row.arguments}".rstrip(), row.help) for row in COMMANDS),
    ]
    width = terminal.tty.size()[0] - 1
    left = max(len(typed) for typed, _ in rows) + 2
    lines = []
    for typed, does in rows:
        if width < _NARROW:
            lines.append(f"{typed}\n    {does}")
        else:
            lines.append(fill(does, width, initial_indent=typed.ljust(left), subsequent_indent=" " * left))
    terminal.display.line("\n".join(lines))


def _exit(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.left = True


def _open(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.display.line(f"Opened {open_shown(argument)}.")


COMMANDS: tuple[Command, ...] = (
    Command("help", "", "list the commands", _help),
    Command("vars", "[language]", "list the live variables", runtimes.list_variables),
    Command("show", "name", "look at a value: a table, a picture, any object", runtimes.show),
    Command("run", "file", "run a file in the live session of its language", runtimes.run_file),
    Command("cd", "[folder]", "have all sessions go on in another folder", runtimes.change_folder),
    Command(
        "undo", "[N] [--files] ...", "take back your last message and all that came of it", partial(undo.move, "undo")
    ),
    Command("redo", "[N] [--files] ...", "do again what %undo has taken back", partial(undo.move, "redo")),
    Command("rewind", "[number]", "choose a moment to go back to", undo.rewind),
    Command("diff", "[number]", "what the last block that changed files has changed, or another one", workspace.diff),
    Command("why", "file[:line]", "which block made a file or a line what it is, and who approved it", workspace.why),
    Command(
        "replay",
        "[N]",
        "show again what was done on the screen, in the last turn or in turn N",
        sessions.replay_screen,
    ),
    Command("save_message", "[path]", "save the conversation as JSON (messages.json)", sessions.save_messages),
    Command("load_message", "[path]", "replace the conversation by a saved one", sessions.load_messages),
    Command("fork", "", "go on in a copy of everything, to try another way", workspace.fork),
    Command("switch", "[number]", "go to the other way and back", workspace.switch),
    Command("keep", "", "keep the way you are on, and drop the other", workspace.keep),
    Command("drop", "", "drop the way you are on", workspace.drop),
    Command("sessions", "[words]", "list saved conversations", sessions.list_sessions),
    Command("resume", "[id]", "leave this conversation and take up another one", sessions.resume_session),
    Command("branch", "[title]", "go on in a new conversation that begins with this one", sessions.branch),
    Command("rename", "[title]", "give this conversation another title", sessions.rename),
    Command(
        "rerun",
        "[language]",
        "run the blocks of this conversation again, to have their variables back",
        sessions.rerun,
    ),
    Command(
        "jupyter", "[path]", "write the conversation as a notebook that runs", partial(sessions.export, "notebook")
    ),
    Command("markdown", "[path]", "write the conversation as Markdown", partial(sessions.export, "markdown")),
    Command("html", "[path]", "write the conversation as one page", partial(sessions.export, "html")),
    Command(
        "script",
        "[path] [--all] [--verify]",
        "write a program of the blocks that the result needs",
        partial(sessions.export, "script"),
    ),
    Command("open", "[number or path]", "open the last page, picture or table in its own program", _open),
    Command(
        "model", "[name] [address]", "ask another model from now on; without a name, tell which it is", settings.model
    ),
    Command("see", "[on/off]", "whether the model sees what you run with ! and >>>", settings.share_commands),
    Command("reset", "", "forget the conversation and end all sessions", settings.reset),
    Command(
        "mode",
        "[ask/auto/auto-in-sandbox/plan]",
        "when you are asked before code runs; tells which it is",
        settings.mode,
    ),
    Command(
        "sandbox",
        "[off/read-only/workspace]",
        "what code can reach; without a word, tell which it is",
        settings.sandbox,
    ),
    Command("auto_run", "[true/false]", "run code without asking", settings.auto_run),
    Command("verbose", "[true/false]", "tell more; shows the messages as they are", settings.verbose),
    Command("debug", "[true/false]", "the old name of %verbose", settings.debug),
    Command("cost", "", "what the model has cost", settings.cost),
    Command(
        "tokens", "[message]", "what the model has read, written and cost, and how full its window is", settings.tokens
    ),
    Command("info", "", "versions, model and settings", settings.info),
    Command("exit", "", "leave", _exit),
)
