"""From a Python call that the table knows to its effects."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable
from typing import Literal, NamedTuple

from interpreter.policy.analysis.notes import HOLE, Doing, Notes, analyze_embedded, sql_changes
from interpreter.policy.analysis.programs import Call, analyze_command, note_environment
from interpreter.policy.analysis.python_values import Values
from interpreter.policy.analysis.tables import Does, is_known_module, python_calls, python_methods


class Called(NamedTuple):
    """A call, or the mention of a function that somebody else will call (`node` is None)."""

    name: str
    node: ast.Call | None
    values: Values
    doing: Doing
    notes: Notes
    in_loop: bool

    def argument(self, does: Does) -> ast.expr | None:
        """The argument that an effect is about."""
        if self.node is None:
            return None
        if does.name == "self":
            return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None
        if 0 <= does.at < len(self.node.args):
            return self.node.args[does.at]
        return self.keyword(does.name) if does.name else None

    def keyword(self, *names: str) -> ast.expr | None:
        keywords = self.node.keywords if self.node else []
        return next((each.value for each in keywords if each.arg in names), None)

    def text(self, does: Does) -> str:
        return self.values.text(self.argument(does))

    @property
    def spread(self) -> bool:
        """Are there arguments that only the run tells (`*args`, `**options`)?"""
        if self.node is None:
            return True
        stars = any(isinstance(each, ast.Starred) for each in self.node.args)
        return stars or any(each.arg is None for each in self.node.keywords)


def run(does: Does, called: Called) -> None:
    """`subprocess.run` and its like: words, or a text with or without a shell."""
    argument = called.argument(does)
    words = called.values.words(argument)
    before = called.notes.places.cwd
    if (environment := called.keyword("env")) is not None:
        _environment(environment, called)
    if (folder := called.keyword("cwd")) is not None:
        called.notes.places.move(called.values.text(folder))
    if _through_shell(called):
        analyze_embedded("shell", words[0] if words else called.values.text(argument), called.doing.line, called.notes)
    elif (program := called.keyword("executable")) is not None:
        _command([called.values.text(program), *(words or [HOLE, HOLE])[1:]], called)
    elif words is None:
        _split(called.values.text(argument), called)
    else:
        _command(words, called)
    called.notes.places.cwd = before


def _environment(node: ast.expr, called: Called) -> None:
    """`{**os.environ, "A": "1"}`: its names are known."""
    keys = node.keys if isinstance(node, ast.Dict) else [None]
    values = node.values if isinstance(node, ast.Dict) else [node]
    for key, value in zip(keys, values, strict=True):
        if key is not None or called.values.name(value) not in ("os.environ", "os.environ.copy()"):
            note_environment(called.values.text(key), called.doing)


def run_all(does: Does, called: Called) -> None:
    """The words are the arguments."""
    _command([called.values.text(each) for each in called.node.args] if called.node else [HOLE], called)


def execute(does: Does, called: Called) -> None:
    """`os.execvp(file, words)` and its like; with `all`, the words are arguments."""
    given = called.node.args[does.at :] if called.node else []
    if does.kind == "execall":
        words = [called.values.text(each) for each in given[1:]]
    else:
        words = called.values.words(given[1] if len(given) > 1 else None) or [HOLE, HOLE]
    _command([called.values.text(given[0] if given else None), *words[1:]], called)


def shell(does: Does, called: Called) -> None:
    analyze_embedded("shell", called.text(does), called.doing.line, called.notes)


def code(does: Does, called: Called) -> None:
    """`exec` and `eval`: of a text that is written out, it can be looked at."""
    text, argument = called.text(does), called.argument(does)
    if called.node is not None and (argument is None or isinstance(argument, ast.Lambda)):
        return
    if HOLE in text or not isinstance(argument, ast.Constant):
        called.doing.unknown(f"{called.name}() of code that is made when it runs")
    else:
        analyze_embedded("python", text, called.doing.line, called.notes)


def imported(does: Does, called: Called) -> None:
    name = called.text(does)
    if HOLE in name:
        called.doing.unknown("a module that is chosen when it runs")
    elif not is_known_module(name):
        called.doing.unknown(f"what the module {name} does")


def program(does: Does, called: Called) -> None:
    called.doing.program(called.text(does), known=False)


def fork(does: Does, called: Called) -> None:
    if called.in_loop:
        called.doing.words = ["fork-bomb"]
        called.doing.note("kill", "this machine: a loop that starts itself over and over")


def _through_shell(called: Called) -> bool:
    return not _is_false(called.keyword("shell"))


def _split(text: str, called: Called) -> None:
    """One text without a shell: the program, or the program and its words."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    if not words or HOLE in words[0]:
        called.doing.unknown("a command that is put together when it runs")
    else:
        _command(words, called)


def _command(words: list[str], called: Called) -> None:
    text = " ".join(words).replace(HOLE, "*")
    analyze_command(Call(words, called.doing.line, text), called.notes)


Handler = Callable[[Does, Called], None]
_TARGETS = "path_or_buf path fname filename fp buf excel_writer file outfile save_directory".split()
# Written there, a table is in no file, or in one that was noted when it was opened.
_IN_MEMORY = frozenset(
    "io.StringIO() io.BytesIO() open() zipfile.ZipFile() pathlib.Path().open() pandas.ExcelWriter()".split()
)
_SELF = Does("", -1, "self")


def apply(effects: tuple[Does, ...], called: Called) -> None:
    """Write down each effect."""
    for does in effects:
        KINDS[does.kind](does, called)


def _read(does: Does, called: Called) -> None:
    missing = called.argument(does) is None and not called.spread and does.name != "self"
    called.doing.read("." if missing else called.text(does))


def _write(does: Does, called: Called) -> None:
    if called.name == "logging.basicConfig" and called.argument(does) is None and not called.spread:
        return
    called.doing.write(called.text(does))


def _delete(does: Does, called: Called) -> None:
    called.doing.delete(called.text(does), tree=does.kind == "tree")


def _opened(does: Does, called: Called) -> None:
    match called.node:
        case ast.Call(args=[ast.Constant(value=int()), *_]):
            return  # a descriptor
    position = called.node.args[1] if called.node and len(called.node.args) > 1 else called.keyword("mode")
    named = "name" if called.keyword("name") is not None else "file"
    _by_mode(position, called.text(Does("", 0, named)), called)


def _opened_path(does: Does, called: Called) -> None:
    """`Path.open`: the mode is the first argument."""
    position = called.node.args[0] if called.node and called.node.args else called.keyword("mode")
    if position is not None and not re.fullmatch(r"[rwaxbtU+]+", called.values.text(position)):
        _unknown(does, called)
    _by_mode(position, called.values.text(called.argument(_SELF)), called)


def _by_mode(position: ast.expr | None, path: str, called: Called) -> None:
    mode = "r" if position is None and not called.spread else called.values.text(position)
    if HOLE in mode or any(letter in mode for letter in "wax+"):
        called.doing.write(path)
    else:
        called.doing.read(path)


def _written(does: Does, called: Called) -> None:
    """`df.to_csv(path)`; without a path it gives back a text."""
    target = called.argument(does) or called.keyword(*_TARGETS)
    method = called.doing.words[0].rpartition(".")[2]
    if target is None and (called.spread or method in ("save", "save_model", "save_weights")):
        called.doing.write(HOLE)
    elif target is not None and called.values.name(target) not in _IN_MEMORY:
        called.doing.write(called.values.text(target))


def _fetched(does: Does, called: Called) -> None:
    argument, text = called.argument(does), called.text(does)
    if "://" in text:
        called.doing.network(text, "get")
    elif argument is None or called.values.name(argument) not in _IN_MEMORY:
        called.doing.read(text)


def _network(how: Literal["get", "send"]) -> Handler:
    def note(does: Does, called: Called) -> None:
        argument = called.argument(does)
        if isinstance(argument, ast.Call) and called.values.name(argument.func).endswith("Request"):
            inner = argument.args[0] if argument.args else None
            called.doing.network(called.values.text(inner), "send")
        else:
            called.doing.network(called.values.text(argument) if argument is not None else "", how)

    return note


def _address(does: Does, called: Called) -> None:
    argument = called.argument(does)
    parts = called.values.words(argument) or [called.values.text(argument)]
    called.doing.network(parts[0], "send")


def _kill(does: Does, called: Called) -> None:
    argument = called.argument(does)
    number = called.values.text(argument)
    what = "this program" if called.name == "os.abort" else "a process"
    called.doing.note("kill", what if HOLE in number else f"process {number}")


def _sql(does: Does, called: Called) -> None:
    text = called.text(does)
    # What it is must be written out; the rest may be filled in.
    told = called.node is not None and text.strip() and HOLE not in text.lstrip()[:6]
    if re.search(r"\b(attach|vacuum|load_extension|writefile|copy|export|install)\b", text, re.IGNORECASE):
        called.doing.unknown("SQL that may reach other files")
    if not told or sql_changes(text.replace(HOLE, " x ")):
        _database(does, called)


def _database(does: Does, called: Called) -> None:
    path = _connected(called)
    if path is None:
        called.doing.note("database", "a database", known=False, how="server")
    elif path != ":memory:":
        called.doing.path("database", path, "file")


def _connected(called: Called) -> str | None:
    """The file of the database that the block has opened."""
    for variable in called.values.assigned:
        value = called.values.value(variable)
        name = called.values.name(value.func) if isinstance(value, ast.Call) else ""
        if not isinstance(value, ast.Call) or not name:
            continue
        first = called.values.text(value.args[0]) if value.args else ":memory:"
        if name in ("sqlite3.connect", "duckdb.connect", "aiosqlite.connect"):
            return first
        if name == "sqlalchemy.create_engine":
            return (first.partition(":///")[2] or ":memory:") if first.startswith("sqlite") else None
    return None


def _commit(does: Does, called: Called) -> None:
    if _connected(called) is None:
        _database(does, called)


def _touch(does: Does, called: Called) -> None:
    path = called.text(does)
    if called.argument(does) is not None and not path.startswith((":memory:", "file::memory:")):
        called.doing.write(path)


def _engine(does: Does, called: Called) -> None:
    url = called.text(does)
    if not url.startswith("sqlite"):
        called.doing.network(url, "get")
    elif path := url.partition(":///")[2]:
        called.doing.write(path)


def _reach(does: Does, called: Called) -> None:
    host = called.keyword("host")
    called.doing.network(called.values.text(host) if host is not None else "", "get")


def _server(does: Does, called: Called) -> None:
    called.doing.note("database", called.doing.words[0], how="server")


def _extract(does: Does, called: Called) -> None:
    target = called.argument(does)
    called.doing.write(f"{called.values.text(target)}/*" if target is not None or called.spread else "./*")


def _attribute(does: Does, called: Called) -> None:
    """`getattr(os, "remove")` is `os.remove`; a name that is made at run time may be any."""
    if called.node is None or len(called.node.args) < 2:
        called.doing.unknown(f"{called.name} is handed on")
        return
    owner, wanted = called.values.name(called.node.args[0]), called.values.text(called.node.args[1])
    if called.name != "getattr":
        if owner in called.values.imports.values() or HOLE in wanted:
            called.doing.unknown(f"{called.name}() changes what a name means")
    elif HOLE in wanted or wanted.startswith("_") or wanted in python_methods():
        called.doing.unknown("getattr() of a name that is made when it runs")
    elif effects := python_calls().get(f"{owner}.{wanted}"):
        apply(effects, called._replace(name=f"{owner}.{wanted}", node=None))


def _unknown(does: Does, called: Called) -> None:
    called.doing.unknown(f"what {called.doing.words[0] or called.name} does")


def _temporary(does: Does, called: Called) -> None:
    called.doing.write("/tmp/*", how="temporary")


def _environment_file(does: Does, called: Called) -> None:
    called.doing.read(".env" if called.argument(does) is None else called.text(does))


def _archive(does: Does, called: Called) -> None:
    called.doing.write(f"{called.text(does)}.*")


def _environment_values(does: Does, called: Called) -> None:
    called.doing.note("secret", "the environment")


def _inplace(does: Does, called: Called) -> None:
    """`fileinput.input(files, inplace=True)` writes what it reads."""
    argument = called.argument(does)
    paths = called.values.words(argument) or [called.values.text(argument)]
    called.doing.read(*paths)
    changes = called.keyword("inplace")
    if called.spread or (called.node and len(called.node.args) > 1) or not _is_false(changes):
        called.doing.write(*paths)
    if called.keyword("openhook") is not None:
        called.doing.unknown("a function that opens files")


def _is_false(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and not node.value)


def _fixed(does: Does, called: Called) -> None:
    """A name that is written out; anything else may be a module or an address."""
    if not re.fullmatch(r"[\w.-]+", called.text(does)):
        _unknown(does, called)


def _unpickled(does: Does, called: Called) -> None:
    _fetched(does, called)
    if called.spread or not _is_false(called.keyword("allow_pickle")) or (called.node and len(called.node.args) > 2):
        _unknown(does, called)


def _read_text(does: Does, called: Called) -> None:
    """`config.read("a.ini")`; of a file, what is given is a number."""
    argument = called.argument(does)
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        called.doing.read(argument.value)


def _towards(does: Does, called: Called) -> None:
    """`f.write(text)`: where that goes was noted when it was opened, if it is seen that it is a file."""
    name = called.values.name(called.argument(_SELF) or ast.Constant(None))
    if not re.search(r"(open|StringIO|BytesIO|File|fdopen)\(\)$", name) and not name.startswith("sys.std"):
        _unknown(does, called)


def _methods(does: Does, called: Called) -> None:
    """`df.agg("mean")` calls the method of that name."""
    given = [*called.node.args, *called.node.keywords] if called.node else []
    texts = [part.value for each in given for part in ast.walk(each) if isinstance(part, ast.Constant)]
    if any(isinstance(text, str) and (text in python_methods() or text.startswith(("to_", "_"))) for text in texts):
        _unknown(does, called)


def _expression(does: Does, called: Called) -> None:
    """`df.query("a > @b")`: names in it can lead anywhere."""
    text = called.text(does)
    if called.argument(does) is not None and (HOLE in text or re.search(r"@\w+\s*[.(\[]|__", text)):
        _unknown(does, called)


KINDS: dict[str, Handler] = {
    "read": _read,
    "write": _write,
    "delete": _delete,
    "tree": _delete,
    "opened": _opened,
    "openedpath": _opened_path,
    "written": _written,
    "fetch": _fetched,
    "extract": _extract,
    "temporary": _temporary,
    "env": _environment_file,
    "writearchive": _archive,
    "get": _network("get"),
    "send": _network("send"),
    "sendto": _address,
    "reach": _reach,
    "engine": _engine,
    "touch": _touch,
    "sql": _sql,
    "commit": _commit,
    "table": _database,
    "server": _server,
    "kill": _kill,
    "run": run,
    "runall": run_all,
    "exec": execute,
    "execall": execute,
    "shell": shell,
    "code": code,
    "import": imported,
    "program": program,
    "fork": fork,
    "attribute": _attribute,
    "unknown": _unknown,
    "environment": _environment_values,
    "inplace": _inplace,
    "fixed": _fixed,
    "unpickled": _unpickled,
    "readtext": _read_text,
    "towards": _towards,
    "methods": _methods,
    "expression": _expression,
}
