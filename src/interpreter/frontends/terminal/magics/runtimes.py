"""Magic commands on the live runtimes: their variables (%vars), their folder, the user's own code (!, %%, >>>)."""

from __future__ import annotations

import os
import re

from rich.filesize import decimal

from interpreter.api import OpenInterpreter
from interpreter.app import environments, own_blocks, result_of
from interpreter.console_text import visible
from interpreter.errors import UsageError
from interpreter.frontends.terminal.approval import yes_or_no
from interpreter.frontends.terminal.chat import follow, show_block
from interpreter.frontends.terminal.magics.settings import NEW_SESSIONS
from interpreter.frontends.terminal.prompt import show_data_stack
from interpreter.frontends.terminal.render.ansi import clip
from interpreter.frontends.terminal.render.tables import GAP, column_texts
from interpreter.frontends.terminal.terminal import Terminal
from interpreter.host.exposure import is_inside
from interpreter.runtimes import data_stack

_HEADINGS = ("name", "type", "shape", "size", "preview")


# -- variables -----------------------------------------------------------------------------------------------------


def list_variables(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    by_language = interpreter.computer.variables(argument or None)
    width = terminal.tty.size()[0] - 1
    kept = [at for at in range(len(_HEADINGS)) if width >= 60 or at in (0, 1, 4)]
    for language, variables in by_language.items():
        if not variables:
            continue
        rows = [
            (each.name, each.type, each.shape, "" if each.size is None else decimal(each.size), each.preview)
            for each in variables
        ]
        terminal.display.line(language, "heading3" if not terminal.plain else "hint")
        filled = [at for at in kept if any(row[at] for row in rows)]
        # Columns are as wide as they need to be; only the end of the last one is cut off.
        columns = [[visible(row[at]) for row in [_HEADINGS, *rows]] for at in filled]
        padded = [column_texts(column, right=False, widest=30) for column in columns[:-1]]
        for row in zip(*padded, columns[-1], strict=True):
            terminal.tty.write(clip(GAP.join(["", *row]), width).rstrip() + "\n")
    if not any(by_language.values()):
        terminal.display.line(f"No {argument or 'session'} has any variables yet.")


def list_languages(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    runtimes = interpreter.computer.runtimes
    programs = [(each, runtimes.runtime(each.name).installed()) for each in interpreter.computer.languages]
    widest = max(len(each.name) for each, _ in programs)
    for language, program in programs:
        if program is not None:
            terminal.display.line(f"  {language.name:{widest}}  {program or 'ready'}")
    if any(program is None for _, program in programs):
        terminal.display.line("Not installed:", "heading3" if not terminal.plain else "hint")
    for language, program in programs:
        if program is None:
            terminal.display.line(f"  {language.name:{widest}}  {language.install}")


# -- the Python environment ----------------------------------------------------------------------------------------

_ORIGINS = {
    "setting": "chosen with %python or computer.python",
    "active": "the active environment",
    "project": "the environment of this project",
    "session": "a session environment",
}


def switch_python(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if argument:
        note = result_of(environments.switch_python(interpreter, None if argument == "auto" else argument.strip("\"'")))
        if note:
            terminal.display.line(visible(note))
    terminal.display.line(_python_line(interpreter))


def _python_line(interpreter: OpenInterpreter) -> str:
    chosen = environments.environment_of(interpreter)
    version = interpreter.runtimes.runtime("python").version() or "that doesn't start"
    origin = _ORIGINS[chosen.origin]
    if chosen.is_layer and chosen.origin in ("active", "setting"):
        origin = "a layer above the environment of Open Interpreter"
    return f"Python {version}, {origin}: {chosen.folder or chosen.python}"


def environment(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    match argument.split():
        case ["reset"]:
            done = follow(
                interpreter,
                environments.reset_environment(interpreter),
                lambda question: yes_or_no(terminal, question.text),
            )
            terminal.display.line("Removed. Modules that are loaded stay until %reset." if done else "Nothing changed.")
        case ["remove" | "uninstall", name] if re.fullmatch(r"[A-Za-z0-9][\w.-]*", name, re.ASCII):
            if terminal.confirm(f"Uninstall {name}?"):
                run_code(terminal, interpreter, f">>> %pip uninstall -y {name}")
            else:
                terminal.display.line("Nothing changed.")
        case []:
            chosen = environments.environment_of(interpreter)
            lines = [_python_line(interpreter), *(f"  {name} {version}" for name, version in chosen.installed())]
            if len(lines) == 1:
                lines.append("No packages are installed in it.")
            if chosen.is_layer:
                lines.append("Behind it, code can import what Open Interpreter has installed, but not change it.")
            if chosen.stack and interpreter.computer.data_stack:
                lines.append(data_stack.status(interpreter.computer.data_stack))
            terminal.display.line("\n".join(lines))
        case ["stack", "update"] if interpreter.computer.data_stack:
            environments.update_stack(interpreter, show_data_stack)
            terminal.display.line("Installing the data packages in the background. %env shows how far that is.")
        case ["stack", "remove"]:
            if removed := terminal.confirm("Remove the data packages for all folders?"):
                data_stack.remove_stack()
            terminal.display.line("Removed. Loaded modules stay until %reset." if removed else "Nothing changed.")
        case _:
            options = "%env remove PACKAGE, %env reset, %env stack update or %env stack remove"
            raise UsageError(f"Unknown option: {argument}. Use %env, {options}.")


def pip(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    run_code(terminal, interpreter, f">>> %pip {argument}")


# -- the user's own code -------------------------------------------------------------------------------------------


def change_folder(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if argument == "--move":
        _move_workspace(terminal, interpreter)
        return
    path = result_of(own_blocks.change_folder(interpreter, argument.strip("\"'") or "~"))
    terminal.display.line(f"All sessions now work in {path}.")
    if terminal.forks is None and not is_inside(*map(os.path.realpath, (path, interpreter.workspace))):
        terminal.display.line(
            f"Undo covers only {interpreter.workspace}. To move the workspace here, press F6 or type %cd --move."
        )


def _move_workspace(terminal: Terminal, interpreter: OpenInterpreter) -> None:
    if terminal.forks is not None:
        raise UsageError("A fork has its own copy of the workspace. Keep or drop it first.")
    before, has_sandbox = interpreter.workspace, interpreter.sandbox_now() is not None
    result_of(own_blocks.move_workspace(interpreter))
    terminal.display.line(
        f"The workspace is now {interpreter.workspace}: undo covers its files. For those in {before}, move back."
        + f"\n{NEW_SESSIONS}" * has_sandbox
    )


def run_file(terminal: Terminal, interpreter: OpenInterpreter, argument: str) -> None:
    if not argument:
        raise UsageError("Say which file to run, for example %run prepare.py.")
    for _ in show_block(terminal, interpreter, own_blocks.run_file(interpreter, argument.strip("\"'"))):
        pass


def run_code(terminal: Terminal, interpreter: OpenInterpreter, line: str) -> None:
    """Run `!command`, `%% command` or `>>> code` in the runtime that the model uses; the model doesn't see %%."""
    if line.startswith(">>>"):
        language, code, example = "python", own_blocks.python_of(line), "some code after >>>, for example >>> 1 + 1"
    else:
        code = line.removeprefix("!" if line.startswith("!") else "%%").strip()
        language, example = "shell", "a command after !, for example !ls"
    if not code.strip():
        raise UsageError(f"Write {example}.")
    shared = False if line.startswith("%%") else None
    for _ in show_block(terminal, interpreter, own_blocks.run_own_block(interpreter, language, code, shared)):
        pass
