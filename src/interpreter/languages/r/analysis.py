"""What an R block would do, from the calls that R's own parser finds in it. Nothing of the code is evaluated.

A function that calls.txt doesn't list may do anything. Without R nothing is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from interpreter.host import processes
from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import HOLE, ON_PATHS, Notes, StepEffects, analyze_embedded
from interpreter.policy.analysis.programs import note_environment
from interpreter.policy.analysis.sql import note_database_file, note_sql
from interpreter.policy.analysis.tables import Does, calls, listed

_CALLS = Path(__file__).with_name("calls.R")
_TABLE = str(Path(__file__).with_name("calls.txt"))
_MAX_LENGTH = 50_000
_PARSER_SECONDS = 5.0
_ON_EACH = {
    "fetch": "read",
    "fetchtext": "read",
    "fetchtable": "read",
    "deleteall": "delete",
}  # what `lapply(files, read.csv)` does to each


_OPTIONAL = (("shell", -1), ("given", -1))
_HARMLESS = ("@function", "@calling", "@syntax")


class Argument(NamedTuple):
    """An argument of a call: its name, kind, the function that makes it, and the texts that it may be, with holes."""

    name: str
    kind: str
    maker: str
    texts: list[str]


def analyze(
    code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]], line: int = 1
) -> dict[str, tuple[Effect, ...]]:
    """Record what the code would do; return the effects of calling each function that it defines."""
    if not notes.steps:
        notes.step("r", "the code itself", 1)
    try:
        records = _records(code)
    except TimeoutError:
        notes.not_known("r", "R code that takes too long to parse", line, "unparsed")
        return {}
    except (OSError, ValueError) as error:
        notes.not_known("r", str(error), line, "unparsed")
        return {}
    start, look = len(notes.steps), _Look(notes, known, line - 1)
    for kind, *fields in records:
        look.see(kind, fields)
    effects = [effect for step in notes.steps[start:] for effect in step.effects]
    return {
        name: tuple(effect for effect in effects if first < effect.line - line + 2 <= last + 1)
        for name, (first, last) in look.own.items()
        if last
    }


@lru_cache(8)  # an approval looks at the same code several times
def _records(code: str) -> list[list[str]]:
    """Return the parser's records (see calls.R); OSError without R, ValueError for code that R can't parse."""
    program = processes.which("Rscript")
    if program is None:
        raise OSError("no parser for R is installed (Rscript)")
    if len(code) > _MAX_LENGTH:
        raise ValueError("a very long program")
    environment = {"R_DEFAULT_PACKAGES": "NULL", "LC_ALL": "C.UTF-8"}
    text = code.replace("\r\n", "\n").encode("utf-8", "replace")
    done = processes.run([program, "--vanilla", str(_CALLS)], env=environment, stdin=text, timeout=_PARSER_SECONDS)
    records = [record.split("\x1f") for record in done.text.replace("\x01", HOLE).split("\x1e")]
    if done.returncode or records[-2:] != [["end"], [""]]:
        raise ValueError("R code that cannot be parsed")
    return records[:-2]


class _Look:
    """Takes the parser's records, one after the other."""

    def __init__(self, notes: Notes, known: Mapping[str, tuple[Effect, ...]], offset: int) -> None:
        self.notes, self.known, self.offset = notes, known, offset
        self.own: dict[str, tuple[int, int]] = {}  # names that the code gives a meaning; of functions, with their lines
        self.databases: list[str] = []  # the files that it connects to; empty: one in memory

    def see(self, kind: str, fields: list[str]) -> None:
        if kind == "own":
            self.own.setdefault(fields[0], (int(fields[1] or 0), int(fields[2] or 0)))
            return
        line, name, extra, *rest = fields
        parts = [each.split("\x1d") for each in rest]
        arguments = [Argument(argument, made, maker, texts) for argument, made, maker, *texts in parts]
        call_texts = [name, *(text for each in arguments for text in each.texts)]
        doing = self.notes.step("r", name, int(line) + self.offset, call_texts)
        if kind == "call":
            self._call(name, extra, arguments, doing)
        elif kind == "name":
            self._handed_on(name, extra, arguments, doing)
        elif extra not in self.own and extra not in listed(_TABLE, "@factory"):
            doing.unknown(name)
        doing.dropped = not doing.effects

    def _handed_on(self, name: str, caller: str, others: list[Argument], doing: StepEffects) -> None:
        """Record a function that is passed to another one, which may call it with any arguments."""
        effects = calls(_TABLE).get(name)
        is_harmless = caller in listed(_TABLE, "@columns") or caller in listed(_TABLE, "@computing")
        if not effects or is_harmless or (name in self.own and caller != "::"):
            return
        kinds = {_ON_EACH.get(does.kind, does.kind) for does in effects if (does.kind, does.at) not in _OPTIONAL}
        if caller in listed(_TABLE, "@calling") and kinds <= ON_PATHS.keys() and others:
            for kind in kinds:
                doing.on_paths(kind, *(text for each in others for text in each.texts))
        else:
            doing.unknown(f"{name} is passed on")

    def _call(self, name: str, package: str, arguments: list[Argument], doing: StepEffects) -> None:
        effects = calls(_TABLE).get(name)
        if package == "$":  # a function in a list or an object
            if name not in self.own.keys() | listed(_TABLE, "@method"):
                doing.unknown("a call of a function that is only known at run time")
            return
        if package and package not in listed(_TABLE, "@package"):
            doing.unknown(f"what the package {package} does")
        if name in listed(_TABLE, "@calling"):
            for each in arguments:  # `sapply(x, "unlink")`
                if each.kind == "string" and any(calls(_TABLE).get(text) for text in each.texts):
                    doing.unknown(f"{each.texts[0]} is passed on")
        if effects is None and name in self.known and name not in self.own:
            doing.effects += [replace(effect, line=doing.line) for effect in self.known[name]]
        elif effects is None and name not in self.own and not any(name in listed(_TABLE, kind) for kind in _HARMLESS):
            doing.unknown(f"what {name}() does")
        for does in effects or ():
            self._apply(does, arguments, doing)

    def _apply(self, does: Does, arguments: list[Argument], doing: StepEffects) -> None:
        given = _argument(does, arguments)
        texts = given.texts if given is not None else [does.default or HOLE]
        names = {each.name for each in arguments}
        match does.kind:
            case "unknown":
                doing.unknown(f"what {doing.words[0]} does")
            case "given" if given is not None:
                doing.unknown(f"what {doing.words[0]} does")
            case "import" if given is None or not _names(given) <= listed(_TABLE, "@package"):
                doing.unknown("what a package does that isn't known")
            case "install":
                for text in texts:
                    doing.note("install", text if text != HOLE else "packages", how="R")
                doing.network("github.com" if "github" in doing.words[0] else "cloud.r-project.org", "get")
            case "remove":
                doing.note("install", texts[0], how="remove")
            case "deleteall":
                doing.delete(*(text for each in arguments for text in each.texts))
            case "link":
                target = _argument(Does("", 0, "from"), arguments)
                doing.link(texts[0], target.texts[0] if target else HOLE, doing.words[0] == "file.link")
            case "extract":
                doing.read(*texts)
                if "list" not in names:
                    doing.unpack(next((each.texts[0] for each in arguments if each.name == "exdir"), "."))
                    doing.unknown("what the archive writes")  # R follows `../`
            case "opened":
                mode = _argument(Does("", 1, "open"), arguments)
                writes = mode is None or mode.texts[0] not in ("r", "rt", "rb")
                for text in texts:
                    if "://" in text or not writes:
                        _fetch(text, doing)
                    elif text not in ("stdin", "clipboard", ""):
                        doing.write(text, operation="edit" if mode is None or "a" in mode.texts[0] else "")
            case "move":
                self.notes.location.move(texts[0] if len(texts) == 1 else None)
            case "env" if not arguments:
                doing.note("secret", "the environment")
            case "setenv":
                for name in names:
                    note_environment(name, doing)
            case "options" if not names <= listed(_TABLE, "@option"):
                doing.unknown("what an option does")
            case "source":
                _fetch(texts[0], doing)
                doing.unknown(f"what {texts[0]} does".replace(HOLE, "*"))
            case "function" if given is None or given.kind not in ("symbol", "string") or not _is_named(given):
                doing.unknown("a function that is only known at run time")
            case "dataset" if not {name for each in arguments for name in _names(each)} <= listed(_TABLE, "@dataset"):
                doing.unknown("what a data set of this name does")
            case "connect" | "connected" if does.kind == "connected" or (
                arguments and arguments[0].maker in ("SQLite", "duckdb")
            ):
                given = given or _argument(Does("", -1, "dbdir"), arguments)
                self.databases += given.texts[:1] if given is not None else [""]
                if self.databases[-1] not in ("", ":memory:"):
                    doing.write(self.databases[-1], operation="create")
            case "connect":
                hosts = [each.texts[0] for each in arguments if each.name in ("host", "server")]
                doing.network(hosts[0] if hosts else "localhost", "send")
            case "sql" if HOLE not in texts[0][:6] and not note_sql(texts[0], doing):
                pass
            case "sql" | "table" if not self.databases and doing.words[0] != "sqldf":
                doing.note("database", "a database", known=False, how="server")
            case "sql" | "table":
                for file in self.databases:
                    note_database_file(file, True, doing)
            case "get" | "send":
                doing.network(texts[0], does.kind)
            case "quit" if given is not None and texts[0] not in ("no", "ask", "default"):
                doing.unknown("what it saves or runs at the end")
            case "kill":
                doing.note("kill", f"process {texts[0]}")
            case "shell" if given is not None:
                analyze_embedded("shell", texts[0], doing.line, self.notes)
            case _ if (given is None and not does.default) or (given and given.maker in listed(_TABLE, "@connection")):
                pass  # where that goes was noted when it was opened
            case "fetchtable" if " " in texts[0] and "\n" not in texts[0] and not self._is_file(texts[0]):
                analyze_embedded("shell", texts[0], doing.line, self.notes)  # as `fread` takes it
            case "fetch" | "fetchtext" | "fetchtable":
                for text in texts:
                    if does.kind != "fetchtext" or text.lstrip()[:1] not in ("{", "["):
                        _fetch(text, doing)
            case kind if kind in ON_PATHS:
                adds = kind == "write" and "append" in names
                doing.on_paths("edit" if adds else kind, *(text.replace("%03d", "*") for text in texts))

    def _is_file(self, path: str) -> bool:
        return os.path.isfile(self.notes.location.full(path) or "")


def _argument(does: Does, arguments: Iterable[Argument]) -> Argument | None:
    """Find the argument of a call by its name, by an abbreviation of it, or by its position among the unnamed ones."""
    names = {each.name for each in arguments}
    plain = [each for each in arguments if not each.name]
    at = does.at - (does.at > 0 and not listed(_TABLE, "@first").isdisjoint(names))
    by_name = (each for each in arguments if each.name and does.name.startswith(each.name))
    return next(by_name, plain[at] if 0 <= at < len(plain) else None)


def _names(given: Argument) -> set[str]:
    """Return what a name or a text refers to, as `library` resolves it."""
    return set(given.texts) if given.kind == "string" else {given.maker if given.kind == "symbol" else HOLE}


def _is_named(given: Argument) -> bool:
    """Return whether an argument names a harmless function, or one that is recorded as passed on."""
    return given.kind == "symbol" or (HOLE not in given.texts[0] and not calls(_TABLE).get(given.texts[0]))


def _fetch(text: str, doing: StepEffects) -> None:
    """Record that a file or an address is read; a text with several lines is the data itself."""
    if "\n" not in text:
        doing.read(text)
