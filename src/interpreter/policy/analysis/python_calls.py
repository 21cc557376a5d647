"""Turns calls of Python functions that the table lists into effects."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

from interpreter.policy.analysis.notes import HOLE, ON_PATHS, Notes, StepEffects, analyze_embedded
from interpreter.policy.analysis.programs import CommandCall, analyze_command, note_environment
from interpreter.policy.analysis.python_values import PythonValues
from interpreter.policy.analysis.sql import CLOUD, note_database_file, note_sql
from interpreter.policy.analysis.tables import Does, is_known_module, listed, python_calls, python_methods


class Called(NamedTuple):
    """A call, or a function that is passed on for other code to call (`node` is None)."""

    name: str
    node: ast.Call | None
    values: PythonValues
    doing: StepEffects
    notes: Notes
    in_loop: bool

    def argument(self, does: Does) -> ast.expr | None:
        if self.node is None:
            return None
        if does.name == "self":
            return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None
        if 0 <= does.at < len(self.node.args):
            return self.node.args[does.at]
        return self.keyword(does.name) if does.name else None

    def keyword(self, *names: str) -> ast.expr | None:
        return next((each.value for each in (self.node.keywords if self.node else ()) if each.arg in names), None)

    def text(self, does: Does) -> str:
        return self.values.text(self.argument(does))

    def unknown(self) -> None:
        self.doing.unknown(f"what {self.doing.words[0] or self.name} does")

    @property
    def spread(self) -> bool:
        """Return whether it has arguments that are only known at run time (`*args`, `**options`)."""
        if self.node is None:
            return True
        stars = any(isinstance(each, ast.Starred) for each in self.node.args)
        return stars or any(each.arg is None for each in self.node.keywords)


# Two words in a row, which no expression of pandas begins with, or a comment.
_SQL = re.compile(r"\s*(?:--|/\*|(?!not\b)[a-z]+\s+(?!(?:in|not|and|or|is|if)\b)[\w*`\"'(])", re.IGNORECASE)
_MAX_STEPS = 50  # from a call to what its object is made of
_SELF = Does("", -1, "self")


def apply(effects: tuple[Does, ...], called: Called) -> None:
    values, before = called.values, called.values.round
    for variables in values.rounds(called.node):
        values.round = {**before, **variables}
        for does in effects:
            KINDS.get(does.kind, _apply_plain)(does, called)
    values.round = before


def _apply_plain(does: Does, called: Called) -> None:
    """Record the effects that need little more than the argument's text."""
    doing, values, argument, text = called.doing, called.values, called.argument(does), called.text(does)
    is_given = argument is not None or called.spread
    path = values.path(argument)
    if not is_given and does.name != "self" and does.kind in ("read", "unpack"):
        path = "."
    match does.kind:
        case word if word in ON_PATHS:
            doing.on_paths(word, path)
        case "patch":
            for verb, name in re.findall(r"^\*\*\* (Add|Update|Delete|Move)(?: to| File): (.+)$", text, re.MULTILINE):
                doing.on_paths({"Delete": "delete", "Update": "edit"}.get(verb, "write"), name)
            if HOLE in text:
                doing.write(HOLE)
        case "writearchive":
            doing.write(f"{path}.*")
        case "unpack":
            doing.unpack(path)
            if values.text(called.keyword("filter")) != "data":
                doing.unknown("what the archive writes")
        case "writegiven" if is_given:
            doing.write(text)
        case "temporary" if (folder := called.keyword("dir")) is not None or called.spread:
            doing.write(f"{values.text(folder)}/*")
        case "temporary":
            doing.write("/tmp/*", how="temporary")
        case "link" | "hardlink":
            target = called.argument(Does("", 0, "target" if does.name == "self" else "src"))
            doing.link(path, values.text(target), does.kind == "hardlink")
        case "copied" if called.keyword("follow_symlinks", "symlinks") is not None or called.spread:
            doing.location.copy(values.path(called.argument(Does("", 0, "src"))), path)
        case "given" if is_given:
            called.unknown()
        case "env":
            doing.read(".env" if argument is None else text)
        case "readtext" if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            doing.read(text)  # `config.read("a.ini")`; the argument of a file's `read` is a number
        case "fetch" | "unpickled":
            if argument is None or values.name(argument) not in listed("python.txt", "@in_memory"):
                doing.read(text)
            more = called.spread or not _is_false(called.keyword("allow_pickle"))
            if does.kind == "unpickled" and (more or (called.node and len(called.node.args) > 2)):
                called.unknown()
        case "get" | "send" if isinstance(argument, ast.Call) and values.name(argument.func).endswith("Request"):
            doing.network(values.text(argument.args[0] if argument.args else None), "send")
        case "get" | "send":
            doing.network(text, does.kind)
        case "sendto":
            doing.network((values.words(argument) or [text])[0], "send")
        case "reach":
            doing.network(values.text(called.keyword("host")), "get")
        case "kill":
            what = "this program" if called.name == "os.abort" else "a process"
            doing.note("kill", what if HOLE in text else f"process {text}")
        case "program":
            doing.program(text, known=False)
        case "shell":
            analyze_embedded("shell", text, doing.line, called.notes)
        case "runall":
            _command([values.text(each) for each in called.node.args] if called.node else [HOLE], called)
        case "import" if HOLE in text:
            doing.unknown("a module chosen at run time")
        case "import" if not is_known_module(text):
            doing.unknown(f"what the module {text} does")
        case "environment":
            doing.note("secret", "the environment")
        case "fork" if called.in_loop:
            doing.words = ["fork-bomb"]
            doing.note("kill", "this machine: a loop that starts itself again and again")
        case "fixed" if not re.fullmatch(r"[\w.-]+", text):
            called.unknown()  # it may be a module or an address
        case "expression" if called.node and (len(called.node.args) > 1 or _SQL.match(text)):
            _database(Does("sql", 0 if _SQL.match(text) else 1), called)
        case "expression" if argument is not None:
            # `df.query("a > @b")`: names of variables, and methods, can lead anywhere
            methods = re.findall(r"\.\s*(\w+)\s*\(", text)
            computes = HOLE not in text and all(method in listed("python.txt", "@harmless") for method in methods)
            if not computes or re.search(r"@\w+\s*[.(\[]|__", text):
                called.unknown()
        case "unknown":
            called.unknown()


def _database(does: Does, called: Called) -> None:
    """Record what SQL or a database library opens, reads or changes."""
    doing, argument, text = called.doing, called.argument(does), called.text(does)
    match does.kind:
        case "engine" if not text.startswith("sqlite"):
            doing.network(text, "get")
        case "engine" if text.partition(":///")[2]:
            doing.write(text.partition(":///")[2], operation="create")
        case "touch" if text.startswith(CLOUD):
            note_database_file(text, False, doing)
        case "touch" if argument is not None and not text.startswith((":memory:", "file::memory:")):
            doing.write(text, operation="create")
        case "server":
            doing.note("database", doing.words[0], how="server")
        case "commit" if _connected(called) != [HOLE]:
            pass  # what it changes was noted
        case "table" | "commit":
            _change_database(called, _connected(called))
        case "sql":
            paths = _connected(called)
            if called.name.startswith("pandas.") and re.fullmatch(r"\w+", text):
                return  # the name of a table
            # What it is must be written out; the rest may be filled in.
            told = called.node is not None and text.strip() and HOLE not in text.lstrip()[:6]
            if not told and ("" in paths or called.name.startswith("duckdb.")):
                doing.unknown("SQL built at run time")
            if not told or note_sql(text, doing):
                _change_database(called, paths)


def run(does: Does, called: Called) -> None:
    """Analyze `subprocess.run` and similar calls, whose command is a list or a text, with or without a shell."""
    argument = called.argument(does)
    command = called.values.words(argument)
    before = called.notes.location.cwd
    if (environment := called.keyword("env")) is not None:
        # The names in `{**os.environ, "A": "1"}` are known.
        given = environment if isinstance(environment, ast.Dict) else ast.Dict([None], [environment])
        for key, value in zip(given.keys, given.values, strict=True):
            if key is not None or called.values.name(value) not in ("os.environ", "os.environ.copy()"):
                note_environment(called.values.text(key), called.doing)
    if (folder := called.keyword("cwd")) is not None:
        called.notes.location.move(called.values.text(folder))
    if not _is_false(called.keyword("shell")):
        analyze_embedded(
            "shell", command[0] if command else called.values.text(argument), called.doing.line, called.notes
        )
    elif (program := called.keyword("executable")) is not None:
        _command([called.values.text(program), *(command or [HOLE, HOLE])[1:]], called)
    elif command is None:
        # One text without a shell: the program, or the program and its words.
        try:
            command = shlex.split(called.values.text(argument))
        except ValueError:
            command = []
        if not command or HOLE in command[0]:
            called.doing.unknown("a command built at run time")
        else:
            _command(command, called)
    else:
        _command(command, called)
    called.notes.location.cwd = before


def execute(does: Does, called: Called) -> None:
    """Analyze `os.execvp(file, words)` and similar calls; with `all`, the arguments themselves are the command."""
    given = called.node.args[does.at :] if called.node else []
    if does.kind == "execall":
        command = [called.values.text(each) for each in given[1:]]
    else:
        command = called.values.words(given[1] if len(given) > 1 else None) or [HOLE, HOLE]
    _command([called.values.text(given[0] if given else None), *command[1:]], called)


def code(does: Does, called: Called) -> None:
    """Analyze the text given to `exec` or `eval`, if it is written out."""
    text, argument = called.text(does), called.argument(does)
    if isinstance(argument, ast.Constant) and HOLE not in text:
        analyze_embedded("python", text, called.doing.line, called.notes)
    elif called.node is None or not (argument is None or isinstance(argument, ast.Lambda)):
        called.doing.unknown(f"{called.name}() of code built at run time")


def _command(words: list[str], called: Called) -> None:
    analyze_command(CommandCall(words, called.doing.line, " ".join(words).replace(HOLE, "*")), called.notes)


def _opened(does: Does, called: Called) -> None:
    """Record `open(path, mode)` or `path.open(mode)`."""
    of_path = does.kind == "openedpath"
    arguments = called.node.args if called.node else []
    if not of_path and arguments and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, int):
        return  # a descriptor
    at = 0 if of_path else 1
    position = arguments[at] if len(arguments) > at else called.keyword("mode")
    mode = "r" if position is None and not called.spread else called.values.text(position)
    if of_path and position is not None and not re.fullmatch(r"[rwaxbtU+]+", mode):
        called.unknown()
    named = "name" if called.keyword("name") is not None else "file"
    path = called.values.path(called.argument(_SELF if of_path else Does("", 0, named)))
    if HOLE in mode or any(letter in mode for letter in "wax+"):
        called.doing.write(path, operation="" if HOLE in mode or "w" in mode else "edit")
    else:
        called.doing.read(path)


def _written(does: Does, called: Called) -> None:
    """Record `df.to_csv(path)`; without a path it returns a text."""
    target = called.argument(does) or called.keyword(*listed("python.txt", "@target"))
    method = called.doing.words[0].rpartition(".")[2]
    if target is None and (called.spread or method in ("save", "save_model", "save_weights")):
        called.doing.write(HOLE)
    elif target is not None and called.values.name(target) not in listed("python.txt", "@in_memory"):
        called.doing.write(called.values.path(target))


def _change_database(called: Called, paths: list[str]) -> None:
    for path in paths:
        if path == HOLE:
            called.doing.note("database", "a database", known=False, how="server")
        elif path:
            called.doing.path("database", path, how="file")
        elif re.fullmatch(r"duckdb\.\w+", called.name):  # its own connection, which lasts
            called.doing.effects += called.notes.attached


def _connected(called: Called) -> list[str]:
    """Return the files of the databases that the call may reach: an empty text for one in memory, a hole if unknown."""
    values = called.values
    if re.fullmatch(r"(duckdb|polars)\.\w+", called.name):
        return [""]
    is_given = called.name.startswith("pandas.") or called.doing.words[0].endswith(".to_sql")
    made = called.argument(Does("", 1, "con")) if is_given else called.node and called.node.func
    for _ in range(_MAX_STEPS):
        match made:
            case ast.Call(func=func) if values.name(func) in listed("python.txt", "@connecting"):
                return [_database_file(made, called)]
            case ast.Attribute(value=inner) | ast.Call(func=inner) | ast.Await(value=inner):
                made = inner
            case ast.Name(id=name) if (value := values.value(name)) is not None:
                made = value
            case ast.Name(id=name) if not values.bound(name) and name != "self":
                return [HOLE]
            case ast.Constant():
                return [_file_at(values.text(made), called)]
            case _:
                break
    opened = [call for call in values.calls if values.name(call.func) in listed("python.txt", "@connecting")]
    return list(dict.fromkeys(_database_file(call, called) for call in opened)) or [HOLE]


def _database_file(call: ast.Call, called: Called) -> str:
    given = call.args[0] if call.args else next((each.value for each in call.keywords if each.arg == "database"), None)
    text = called.values.text(given) if given is not None else ""
    if called.values.name(call.func) == "sqlalchemy.create_engine":
        return _file_at(text, called, is_noted=True)
    return "" if text.startswith((":memory:", "file::memory:")) else HOLE if text.startswith(CLOUD) else text


def _file_at(address: str, called: Called, is_noted: bool = False) -> str:
    """Return the file of a database at an address such as `sqlite:///a.db`; a hole for one on a server."""
    if address.startswith("sqlite"):
        return address.partition(":///")[2]
    if "://" in address and not is_noted:
        called.doing.network(address, "get")
    return HOLE


def _attribute(does: Does, called: Called) -> None:
    """Record what `getattr(os, "remove")` leads to; a name that is made at run time may be any."""
    if called.node is None or len(called.node.args) < 2:
        called.doing.unknown(f"{called.name} is passed on")
        return
    owner, wanted = called.values.name(called.node.args[0]), called.values.text(called.node.args[1])
    if called.name != "getattr":
        if owner in called.values.imports.values() or HOLE in wanted:
            called.doing.unknown(f"{called.name}() changes the meaning of a name")
    elif HOLE in wanted or wanted.startswith("_") or wanted in python_methods():
        called.doing.unknown("getattr() with a name built at run time")
    elif effects := python_calls().get(f"{owner}.{wanted}"):
        apply(effects, called._replace(name=f"{owner}.{wanted}", node=None))


def _inplace(does: Does, called: Called) -> None:
    """Record `fileinput.input(files, inplace=True)`, which writes the files that it reads."""
    argument = called.argument(does)
    paths = called.values.words(argument) or [called.values.text(argument)]
    called.doing.read(*paths)
    if called.spread or (called.node and len(called.node.args) > 1) or not _is_false(called.keyword("inplace")):
        called.doing.write(*paths)
    if called.keyword("openhook") is not None:
        called.doing.unknown("a function that opens files")


def _is_false(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and not node.value)


def _towards(does: Does, called: Called) -> None:
    """Check that `f` in `f.write(text)` is a file, whose path was recorded when it was opened."""
    name = called.values.name(called.argument(_SELF) or ast.Constant(None))
    if not re.search(r"(open|StringIO|BytesIO|File|fdopen)\(\)$", name) and not name.startswith("sys.std"):
        called.unknown()


def _methods(does: Does, called: Called) -> None:
    """Check the method names in calls such as `df.agg("mean")`, which calls the method of that name."""
    given: list[ast.AST] = [*called.node.args, *called.node.keywords] if called.node else []
    names = [part.id for each in given for part in ast.walk(each) if isinstance(part, ast.Name)]
    for name in names:  # their values, or the objects that they are looked up on
        given += [value for value in called.values.assigned.get(name, ()) if value is not None]
        given += [called.values.iterated[name]] if name in called.values.iterated else []
    parts = [part for each in given for part in ast.walk(each)]
    texts = [part.value for part in parts if isinstance(part, ast.Constant)]
    texts += [called.values.text(part) for part in parts if isinstance(part, ast.BinOp)]
    if any(isinstance(text, str) and (text in python_methods() or text.startswith(("to_", "_"))) for text in texts):
        called.unknown()


def _options(does: Does, called: Called) -> None:
    """Check `pd.set_option("display.max_rows", 9)`: the option `plotting.backend` imports a module."""
    names = map(called.values.text, called.node.args[::2] if called.node else ())
    known = all(map(_OPTION.fullmatch, names))
    if called.spread or not known or (called.node and called.node.keywords):
        called.unknown()


_OPTION = re.compile(r"(display|mode|compute|styler|future)\.[\w.]+|(max|min|chop|precision|float|width|expand)\w*")


def _settings(does: Does, called: Called) -> None:
    """Check `rcParams.update({...})`: the setting `backend` imports a module."""
    argument = called.argument(does)
    if isinstance(argument, ast.Name):
        argument = called.values.value(argument.id)
    keys = [called.values.text(key) for key in argument.keys] if isinstance(argument, ast.Dict) else [HOLE]
    if called.spread or any(HOLE in key or key == "backend" for key in keys):
        called.unknown()


Handler = Callable[[Does, Called], None]
KINDS: dict[str, Handler] = {
    **dict.fromkeys("engine touch server commit table sql".split(), _database),
    "opened": _opened,
    "openedpath": _opened,
    "written": _written,
    "run": run,
    "exec": execute,
    "execall": execute,
    "code": code,
    "attribute": _attribute,
    "inplace": _inplace,
    "towards": _towards,
    "methods": _methods,
    "options": _options,
    "settings": _settings,
}
