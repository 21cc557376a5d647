"""Magic commands: the lines of a chat that begin with %, ! or >>>.

To add one, write its function into the file of its subject, and a row into `GROUPS`. Those of a leaf are in its row of
`leaves.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from typing import NamedTuple

from interpreter import packages
from interpreter.api import OpenInterpreter
from interpreter.errors import ConversationFileError, MissingLeafError, UndoError, UsageError
from interpreter.frontends.terminal import sessions
from interpreter.frontends.terminal.magics import (
    runtimes,
    settings,
    undo,
    workspace,
)
from interpreter.frontends.terminal.render import saved
from interpreter.frontends.terminal.render.ansi import wrapped
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.leaves import ROWS, Magic, leaves, load

_PASSIVE = tuple(".png .jpg .jpeg .gif .webp .bmp .tif .tiff .pdf .csv .tsv .txt .md .json .jsonl .xlsx .ods".split())


class Command(NamedTuple):
    name: str
    arguments: str
    brief: str  # for the overview; empty: another command's names it
    help: str
    run: Callable[[Terminal, OpenInterpreter, str], object]
    examples: tuple[str, ...] = ()


def slash_command(text: str) -> str | None:
    """Turn `/undo 2` into `%undo 2`; None if the first word is not a command, or is an existing path."""
    word = text.split(None, 1)[0]
    is_command = any(row.name == word[1:] for row in (*COMMANDS, *package_commands()))
    return f"%{text[1:]}" if is_command and not os.path.exists(word) else None


def run(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """Run a line such as `%verbose true`, `!ls` or `>>> 1 + 1`."""
    try:
        if line.startswith((">>>", "!", "%%")):
            runtimes.run_code(terminal, interpreter, line)
            return
        typed, argument = [*line[1:].split(None, 1), "", ""][:2]
        _command(typed).run(terminal, interpreter, argument.strip())
    except UndoError as error:
        terminal.display.line(str(error))
    except (UsageError, ConversationFileError, MissingLeafError) as error:
        terminal.display.line(str(error), "error")


def _command(name: str) -> Command:
    known = {row.name: row for row in (*COMMANDS, *package_commands())}
    name = name.lower()
    if name not in known:
        for missing in (row for leaf in ROWS for row in leaf.magics if row.name == name):
            load(missing.run)  # raises an error that says how to get it
        close = get_close_matches(name, known, n=1)
        advice = f"Did you mean %{close[0]}?" if close else "%help lists the commands."
        raise UsageError(f"Unknown command: %{name}. {advice}")
    return known[name]


def package_commands() -> list[Command]:
    """Make the commands that other packages add; nothing is imported before one runs."""

    def command(entry_point: packages.EntryPoint) -> Command:
        def run(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
            packages.load(entry_point)(terminal, interpreter, argument)

        return Command(entry_point.name, "", "", f"Added by {entry_point.package}.", run)

    return [command(each) for each in packages.entry_points("magics")]


def leaf_command(row: Magic) -> Command:
    """Make a command of a leaf's row; the leaf is imported when it runs."""

    def run(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
        load(row.run)(terminal, interpreter, argument)

    return Command(row.name, row.arguments, row.brief, row.help, run, row.examples)


def _help(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    width = terminal.tty.size()[0] - 1
    if argument:
        row = _command(argument.lstrip("%/"))
        lines = [f"%{row.name} {row.arguments}".rstrip(), *wrapped(row.help, width)]
        examples = row.examples or (f"%{row.name}",)
        terminal.display.line("\n".join([*lines, "", "Examples:", *(f"  {each}" for each in examples)]))
        return
    groups = {"Your code": ["!ls shell command", ">>> 1 + 1 Python", "%% ls private shell"]}
    for heading, rows in GROUPS.items():
        groups[heading] = [f"%{row.name} {row.brief}" for row in rows if row.brief]
    if added := package_commands():
        groups["Packages"] = [f"%{row.name}" for row in added]
    left = max(map(len, groups)) + 2
    across = max(1, (width - left + 1) // _CELL)
    lines = []
    for heading, cells in groups.items():
        for start in range(0, len(cells), across):
            line = "".join(cell.ljust(_CELL) for cell in cells[start : start + across])
            lines.append(f"{'' if start else heading:{left}}{line}".rstrip())
    seen = "sees" if interpreter.share_commands else "doesn't see"
    notes = [
        "Keys: Esc stop, Shift-Tab mode, Tab complete, Alt-Enter new line, Ctrl-D leave.",
        f"The model {seen} what you run with ! and >>>. It never sees what you run with %%.",
        "%help undo explains a command and shows examples. /undo works like %undo.",
    ]
    terminal.display.line("\n".join([*lines, *(row for note in notes for row in wrapped(note, width))]))


def _exit(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    terminal.left = True


def _open(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    written = None if argument or saved.shown else _last_written(interpreter)
    path = saved.shown_path(written or argument, interpreter.computer.context.folder_here)
    if interpreter.sandbox_now() is not None and not terminal.confirm(
        f"Code runs in a sandbox, but {path} would open outside it. Open it?"
    ):
        terminal.display.line("Nothing was opened.")
        return
    saved.open_in_viewer(path)
    terminal.display.line(f"Opened {path}.")


def _last_written(interpreter: OpenInterpreter) -> str | None:
    """Find the last file that a block wrote, if opening it runs nothing."""
    for point in reversed(interpreter.timeline.blocks):
        changes = interpreter.timeline.changes(point.id)
        for change in changes.listed if changes is not None else ():
            if change.after is not None and change.after.kind == "file" and change.path.lower().endswith(_PASSIVE):
                return os.path.join(interpreter.workspace, change.path)
    return None


_CELL = 23  # columns of a command in the overview

# fmt: off
GROUPS: dict[str, tuple[Command, ...]] = {
    "Data": (
        Command("vars", "[language]", "list variables",
                "List the live variables with their type, size and a preview.",
                runtimes.list_variables, ("%vars", "%vars python")),
        Command("languages", "", "list all",
                "List the languages of the session with the programs that run them, and how to install the others.",
                runtimes.list_languages, ("%languages",)),
        Command("open", "[number or path]", "a figure",
                "Open the last figure, table, page or file in the program your system uses for it.",
                _open, ("%open", "%open 2", "%open report.html")),
        Command("run", "file", "a file", "Run a file in the live session of its language.",
                runtimes.run_file, ("%run clean.py", "%run setup.sh")),
        Command("cd", "[folder, or --move]", "change folder",
                "Change the folder of all sessions. Without an argument, go to your home folder. --move makes the "
                "current folder the workspace, which undo and the sandbox cover.",
                runtimes.change_folder, ("%cd data", "%cd ..", "%cd --move")),
    ),
    "Undo": (
        Command("undo", "[N] [--files] ...", "a message",
                "Undo your last message and everything it caused: conversation, files and variables.",
                partial(undo.move, "undo"), ("%undo", "%undo 3", "%undo --files")),
        Command("redo", "[N] [--files] ...", "undo the undo", "Redo what %undo undid.",
                partial(undo.move, "redo"), ("%redo", "%redo 2")),
        Command("rewind", "[number]", "pick a moment", "Pick an earlier point and go back to it.",
                undo.rewind, ("%rewind", "%rewind 4")),
        Command("diff", "[number, session or commit]", "changed files",
                "Show what the last block that changed files did, or block NUMBER, the session, or all since COMMIT.",
                workspace.diff, ("%diff", "%diff 3", "%diff session", "%diff HEAD~2")),
        Command("why", "file[:line]", "who changed it",
                "Show which block last changed a file or a line, and who approved it.",
                workspace.why, ("%why sales.csv", "%why report.py:12")),
        Command("reset", "[-y]", "start over",
                "Clear the conversation and all variables. Asks first; -y skips the question. %undo brings them back.",
                settings.reset, ("%reset", "%reset -y")),
    ),
    "Forks": (
        Command("fork", "", "work in a copy",
                "Continue in a copy of the conversation, files and variables, to try something out.", workspace.fork),
        Command("switch", "[number]", "to the other", "Switch between the forks.",
                workspace.switch, ("%switch", "%switch 2")),
        Command("keep", "", "this copy", "Keep this fork and drop the other one.", workspace.keep),
        Command("drop", "", "this copy", "Drop this fork and go back to the other one.", workspace.drop),
    ),
    "Python": (
        Command("python", "[path, conda:NAME, session or auto]", "switch it",
                "Continue in another Python: a program, the folder of a virtual environment, conda:NAME, session for "
                "a session environment, or auto for what would be chosen without it. Variables that can be pickled "
                "move there. Without an argument, show the current one.",
                runtimes.switch_python, ("%python", "%python .venv", "%python conda:science", "%python session")),
        Command("env", "[remove package, reset, stack update or stack remove]", "its packages",
                "Show the environment that code runs in and its packages. remove uninstalls one package; reset removes "
                "all packages from a session environment. Both ask first. stack update installs or upgrades the data "
                "packages, which all session environments share; stack remove deletes them.",
                runtimes.environment, ("%env", "%env remove scipy", "%env reset", "%env stack update")),
        Command("pip", "arguments", "install", "Run pip in the environment that code runs in.",
                runtimes.pip, ("%pip install scipy", "%pip list")),
    ),
    "Sessions": (
        Command("sessions", "[words]", "list", "List saved conversations. Words search in them.",
                sessions.list_sessions, ("%sessions", "%sessions sales report")),
        Command("resume", "[id]", "one", "Leave this conversation and continue a saved one.",
                sessions.resume_session, ("%resume", "%resume 2")),
        Command("branch", "[title]", "copy this one", "Continue in a new conversation that starts with this one.",
                sessions.branch, ("%branch", "%branch with other colours")),
        Command("rename", "[title]", "this one", "Rename this conversation.",
                sessions.rename, ("%rename Sales in May",)),
        Command("rerun", "[language]", "run code again",
                "Run the blocks of this conversation again to restore their variables.",
                sessions.rerun, ("%rerun", "%rerun python")),
    ),
    "Save": (
        Command("jupyter", "[path]", "a notebook", "Export the conversation as a runnable notebook.",
                partial(sessions.export, "notebook"), ("%jupyter", "%jupyter report.ipynb")),
        Command("markdown", "[path]", "text", "Export the conversation as Markdown.",
                partial(sessions.export, "markdown"), ("%markdown", "%markdown report.md")),
        Command("html", "[path]", "a page", "Export the conversation as a single web page.",
                partial(sessions.export, "html"), ("%html", "%html report.html")),
        Command("save_message", "[path]", "JSON", "Save the conversation as JSON (messages.json).",
                sessions.save_messages, ("%save_message", "%save_message monday.json")),
        Command("load_message", "[path]", "JSON", "Replace the conversation with a saved one.",
                sessions.load_messages, ("%load_message monday.json",)),
    ),
    "Model": (
        Command("model", "[name] [address]", "change it",
                "Switch to another model. Without a name, show the current one.",
                settings.model, ("%model", "%model gpt-5", "%model openai/local http://localhost:8000/v1")),
        Command("setup", "", "model or key", "Pick a model again, or paste another key. The key is tested right away.",
                settings.setup),
        Command("tokens", "[message]", "usage",
                "Show input and output tokens, the cost, and how full the context window is.",
                settings.tokens, ("%tokens", "%tokens How long is this message?")),
        Command("cost", "", "price so far", "Show what the model has cost.", settings.cost),
        Command("see", "[on/off]", "share your code",
                "Choose whether the model sees what you run with ! and >>>.", settings.share_commands, ("%see off",)),
        Command("compact", "", "free context",
                "Send the model a short note instead of older messages, to free space in its context window.",
                settings.compact),
    ),
    "Safety": (
        Command("mode", "[ask/auto/auto-in-sandbox/plan]", "when to ask",
                "Set when to ask before running code. Without an argument, show the current mode.",
                settings.mode, ("%mode", "%mode plan")),
        Command("sandbox", "[off/read-only/workspace]", "limit access",
                "Set what code can access. Without an argument, show the current sandbox.",
                settings.sandbox, ("%sandbox", "%sandbox workspace")),
        Command("auto_run", "[true/false]", "never ask", "Run code without asking.",
                settings.auto_run, ("%auto_run true", "%auto_run false")),
    ),
    "Other": (
        Command("help", "[command]", "this page", "List the commands, or explain one.", _help, ("%help", "%help undo")),
        Command("info", "", "versions", "Show versions, the model and the settings.", settings.info),
        Command("verbose", "[true/false]", "and %debug", "Show more, including the messages as they are stored.",
                settings.verbose, ("%verbose", "%verbose false")),
        Command("debug", "[true/false]", "", "The old name of %verbose.", settings.debug),
        Command("install", "extra", "a feature",
                "Install what a part of Open Interpreter needs: browser, calendar, images, jupyter, litellm, local, "
                "os, scan, schema, server or sql. For packages that your code imports, use %pip install.",
                settings.install, ("%install server", "%install browser")),
        Command("exit", "", "leave", "Leave the chat.", _exit),
    ),
}
# fmt: on
for _row in (row for leaf in leaves() for row in leaf.magics):
    GROUPS[_row.group] = (*GROUPS.get(_row.group, ()), leaf_command(_row))
COMMANDS = tuple(row for rows in GROUPS.values() for row in rows)
