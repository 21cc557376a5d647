"""Applications by the names that people call them: desktop entries, and programs on the PATH."""

from __future__ import annotations

import configparser
import difflib
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from interpreter.errors import ComputerError


@dataclass(frozen=True)
class Application:
    """A name, and the command that starts it."""

    name: str
    command: tuple[str, ...]


class NoApplication(ComputerError, ValueError):
    """No application has that name; the message has the nearest names."""


def find(name: str) -> Application:
    """The application that a name means: the name of its entry, of its file, or of its program."""
    wanted = name.strip().casefold()
    if sys.platform == "darwin":
        return Application(name, ("open", "-a", name))
    installed = {spelling: application for application, spellings in entries() for spelling in spellings}
    if wanted in installed:
        return installed[wanted]
    if program := which(name.strip()):
        return Application(name, (program,))
    holding = [spelling for spelling in installed if wanted and wanted in spelling]
    if len({installed[spelling] for spelling in holding}) == 1:
        return installed[holding[0]]
    near = holding or difflib.get_close_matches(wanted, installed, 5, 0.5)
    names = dict.fromkeys(installed[spelling].name for spelling in near)
    raise NoApplication(f"No application is called {name!r}." + (f" Near are: {', '.join(names)}." if names else ""))


def names_of(application: Application, called: str, workspace: str) -> tuple[str, ...]:
    """What an application that would be started may go by: its names, and where its program is.

    A path is no name, unless the program's name leads there as well. In the workspace no program has a name: code can
    put there whatever it likes.
    """
    if sys.platform == "darwin":  # `open` finds it, by name or path
        return (os.path.realpath(called) if "/" in called else called,)
    program = os.path.realpath(which(application.command[0]) or application.command[0])
    folder, bare = os.path.realpath(workspace), os.path.basename(application.command[0])
    if folder != "/" and Path(program).is_relative_to(folder):
        return (program,)
    if "/" in called and os.path.realpath(which(bare) or "") != program:
        return (program,)
    return called.strip(), application.name, bare, program


def entries() -> Iterator[tuple[Application, list[str]]]:
    """The desktop's entries, and the names under which each is known; the user's own first."""
    seen: set[str] = set()
    for folder in _folders():
        for file in sorted(folder.glob("**/*.desktop")):
            if file.name not in seen:
                seen.add(file.name)
                yield from _entry(file)


def _folders() -> list[Path]:
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    shared = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    return [Path(folder) / "applications" for folder in (home, *shared.split(":"))]


def _entry(file: Path) -> Iterator[tuple[Application, list[str]]]:
    parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters=("=",))
    try:
        parser.read(file, encoding="utf-8")
        entry = parser["Desktop Entry"]
        # What stands for files to open is left out: %f, %U and the like.
        command = [word for word in shlex.split(entry["Exec"]) if not word.startswith("%")]
    except (configparser.Error, KeyError, ValueError, OSError):
        return
    if entry.get("Hidden") == "true" or entry.get("Type") != "Application" or not command or not which(command[0]):
        return
    if entry.get("Terminal") == "true":
        command = ["x-terminal-emulator", "-e", *command]
    names = [entry.get("Name", file.stem), file.stem, file.stem.rpartition(".")[2], Path(command[0]).name]
    if "GenericName" in entry:
        names.append(entry["GenericName"])
    yield Application(names[0], tuple(command)), [name.casefold() for name in dict.fromkeys(names)]


def leave(process: subprocess.Popen[bytes]) -> None:
    """Let a program be; a thread takes note of its end, so that it leaves no zombie."""
    threading.Thread(target=process.wait, daemon=True, name=f"end of {process.pid}").start()
