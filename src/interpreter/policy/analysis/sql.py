"""What SQL would do, from its syntax tree: whether it changes tables, and which files and hosts it reaches.

A SQL block, and SQL in Python, JavaScript and shell code. sqlglot parses it; it is imported when SQL is first seen.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import HOLE, Notes, StepEffects
from interpreter.policy.analysis.tables import listed

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

# Tried in order when the kind of database is unknown: the first dialect that can parse a statement counts.
ANY = ("duckdb", "postgres", "sqlite", "mysql", "tsql")
DIALECTS = {
    "duckdb": ("duckdb",),
    "sqlite": ("sqlite", "duckdb"),
    "mysql": ("mysql", "duckdb"),
    "mariadb": ("mysql", "duckdb"),
    "psql": ("postgres", "duckdb"),
    "postgresql": ("postgres", "duckdb"),
    "postgres": ("postgres", "duckdb"),
    "sqlcmd": ("tsql",),
    "mssql": ("tsql",),
    "oracle": ("oracle",),
    "snowflake": ("snowflake",),
    "bigquery": ("bigquery",),
    "clickhouse-client": ("clickhouse",),
}
ATTACHED = "sql attached"  # among the known functions: the database files that an earlier block has attached
CLOUD = ("md:", "motherduck:")
_HOLE = "hole_in_sql"
_MAX_LENGTH = 50_000
_MAX_DEPTH = 100
# Where databases disagree on what is text and what is code: `'a\\'`, MySQL's `#`, `$$`, comments in comments.
_AMBIGUOUS = re.compile(r"\\['\"`]|#|\$\w*\$|/\*(?:(?!\*/).)*/\*", re.DOTALL)
_PLACEHOLDER = re.compile(r"%\(\w+\)s|%s\b")
_STATEMENT = re.compile(r"(?:'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$|[^;])+", re.DOTALL)
_SHELL_COMMAND = re.compile(r"^[ \t]*([.\\][a-zA-Z!?+]+)[ \t]*(.*)$", re.MULTILINE)
_EXPLAIN = re.compile(r"\s*(analyze\b|verbose\b|query\s+plan\b|\([^)]*\))?\s*(verbose\b)?", re.IGNORECASE)
_QUIET = frozenset(
    "DESCRIBE DESC SHOW SUMMARIZE BEGIN START COMMIT END ROLLBACK SAVEPOINT RELEASE ABORT DEALLOCATE RESET".split()
)
_CHANGING = frozenset("CREATE DROP ALTER VACUUM ANALYZE REINDEX CHECKPOINT LOCK GRANT REVOKE COMMENT RENAME".split())
_ACTS = frozenset(
    "insert update delete merge truncatetable create drop alter comment grant revoke analyze into".split()
)
_ASKS = frozenset(
    "select union intersect except subquery table values pivot describe show summarize use transaction commit rollback "
    "detach semicolon".split()
)  # fmt: skip


def analyze(
    code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]], line: int = 1
) -> dict[str, tuple[Effect, ...]]:
    """Record what a SQL block would do; return the database files that it attaches, which later blocks may change.

    Without an address for `computer.sql` the tables are in memory.
    """
    doing = notes.step("sql", code.strip(), line)
    kind, _, rest = notes.database.partition(":")
    attached = known.get(ATTACHED, ())
    changes = note_sql(code, doing, DIALECTS.get(kind.partition("+")[0], ANY))
    attached += tuple(effect for effect in doing.effects if effect.kind == "database")
    if kind in ("sqlite", "duckdb"):
        note_database_file(rest.removeprefix("///"), changes, doing)
    elif kind:
        doing.network(notes.database, "send" if changes else "get")
        if changes:
            doing.note("database", kind, how="server")
    if changes:
        doing.effects += [replace(effect, line=line) for effect in attached]
    return {ATTACHED: attached} if attached else {}


def note_database_file(path: str, changes: bool, doing: StepEffects) -> None:
    """Record that a database file is opened, and perhaps changed; an empty path or `:memory:` is no file."""
    if path.startswith(CLOUD):
        doing.network("api.motherduck.com", "send")
    elif path and not path.startswith((":memory:", "file::memory:")):
        doing.read(path)
        if changes:
            doing.path("database", path, how="file")
            doing.write(path, operation="create")


def note_sql(code: str, doing: StepEffects, dialects: Sequence[str] = ANY) -> bool:
    """Record the files and hosts that SQL reaches; return True if it may change tables."""
    statements = _Statements(doing, dialects)
    if len(code) > _MAX_LENGTH or code.count("(") > _MAX_DEPTH * 10 or "/*!" in code:
        doing.unknown("SQL in a comment" if "/*!" in code else "a very long SQL program")  # MySQL runs it
        return True
    code = _PLACEHOLDER.sub("?", code.replace(HOLE, _HOLE))
    statements.look(_SHELL_COMMAND.sub(lambda command: statements.shell_command(command[1], command[2]), code))
    return statements.changes


def _parsed(code: str, dialects: Sequence[str]) -> list[Expr] | None:
    """Parse the code with the first dialect that understands all its statements; None if no dialect can parse it."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").disabled = True  # it warns about what it doesn't understand, on standard error
    fallback = None
    for dialect in dialects:
        try:
            trees = [tree for tree in sqlglot.parse(code, dialect=dialect) if tree is not None]
        except SqlglotError:
            continue
        if all(tree.key in _ASKS | _ACTS and not _explains(tree) for tree in trees):
            return trees
        fallback = fallback or trees
    return fallback


def _explains(tree: Expr) -> bool:
    """Return whether the statement is `EXPLAIN` of one that changes something, as in MySQL."""
    return tree.key == "describe" and tree.this.key not in _ASKS | {"column"}


def _path(text: str) -> str:
    return text.replace(_HOLE, HOLE)


class _Statements:
    """Walks over the statements of one piece of SQL."""

    def __init__(self, doing: StepEffects, dialects: Sequence[str]) -> None:
        self.doing, self.dialects = doing, dialects
        self.changes = False

    def look(self, code: str) -> None:
        if len(dialects := self.dialects) > 1 and _AMBIGUOUS.search(code):
            for dialect in dialects:
                self.dialects = (dialect,)
                self.look(code)
            self.dialects = dialects
            return
        trees = _parsed(code, self.dialects)
        pieces = [match[0] for match in _STATEMENT.finditer(code) if match[0].strip()] if trees is None else []
        if len(pieces) > 1:
            for piece in pieces:
                self.look(piece)
        elif pieces:
            self.unknown("SQL that cannot be parsed")
        for tree in trees or ():
            self.statement(tree)

    def unknown(self, why: str) -> None:
        self.changes = True
        self.doing.unknown(why)

    def statement(self, tree: Expr) -> None:
        match tree.key:
            case "command":
                self.command(str(tree.this).upper(), getattr(rest := tree.args.get("expression"), "name", rest) or "")
            case "describe" if _explains(tree):
                self.unknown("a statement that EXPLAIN may run")  # MySQL's
            case "column" if tree.name.upper() in _CHANGING:
                self.changes = True
            case "copy":
                self.copy(tree)
            case "attach":
                self.attach(tree)
            case "install":
                self.doing.note("install", f"DuckDB's {tree.this.name}", how="duckdb")
                origin = getattr(tree.args.get("from_"), "name", "")
                hosts = {"": "extensions.duckdb.org", "community": "community-extensions.duckdb.org"}
                self.doing.network(hosts.get(origin.lower(), origin), "get")
                self.extension(origin or tree.this.name)
            case "update" if not tree.expressions:
                self.unknown("an update of extensions")
            case "summarize" if tree.this.key == "literal":
                self.file(tree.this.name)
            case "set":
                for item in tree.expressions:
                    self.setting(item)
            case "pragma":
                self.pragma(tree.sql())
            case key if key not in _ASKS | _ACTS:
                self.unknown(f"what {key} does")
        for node in tree.walk():
            self.node(node)

    def node(self, node: Expr) -> None:
        from sqlglot import exp

        if isinstance(node, exp.Func):
            self.function(node)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            name = ".".join(part.name for part in node.parts)
            ending = name.lower().removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
            if "/" in name or ("." in name and ending in listed("sql.txt", "@ending")) or name == _HOLE:
                self.file(name)
        elif isinstance(node, exp.ModuleProperty) and node.this.name.lower() not in listed("sql.txt", "@module"):
            self.unknown(f"what the module {node.this.name} reads")
        elif isinstance(node, exp.Property) and node.key not in listed("sql.txt", "@property"):
            self.unknown("a table that is kept elsewhere")
        elif node.key in _ACTS:
            properties = node.args.get("properties")
            is_temporary = properties is not None and properties.find(exp.TemporaryProperty) is not None
            self.changes = self.changes or not is_temporary

    def function(self, node: Expr) -> None:
        """Record a call of a function: it computes, reads files, or is unknown."""
        from sqlglot import exp

        is_anonymous = isinstance(node, exp.Anonymous)
        name = node.name.lower() if is_anonymous else node.key
        given = node.expressions[0] if is_anonymous and node.expressions else node.args.get("this")
        if name in listed("sql.txt", "@reader") | listed("sql.txt", "@lister"):
            paths = given.expressions if isinstance(given, exp.Array | exp.Tuple) else [given]
            if name in listed("sql.txt", "@extension_reader"):
                self.doing.network("extensions.duckdb.org", "get")
            for path in paths:
                self.file(path.name if isinstance(path, exp.Literal | exp.Column) else _HOLE)
        elif name in listed("sql.txt", "@changing_function"):
            self.changes = True
        elif name.removeprefix("pragma_") in listed("sql.txt", "@pragma"):
            pass
        elif name not in listed("sql.txt", "@function" if is_anonymous else "@typed"):
            self.unknown(f"what {name}() does")

    def file(self, name: str, writes: bool = False) -> None:
        path = _path(name)
        if "://" in path and not path.startswith("file:"):
            self.doing.network(path, "send" if writes else "get")
        elif writes:
            self.doing.write(path)
        else:
            self.doing.read(path)

    def copy(self, tree: Expr) -> None:
        reads = bool(tree.args.get("kind"))
        self.changes = self.changes or reads
        options = {option.name.lower() for option in tree.args.get("params") or ()}
        for file in tree.args["files"]:
            if file.key == "literal":
                self.file(file.name, writes=not reads)
                if not options.isdisjoint(("partition_by", "per_thread_output", "file_size_bytes")):
                    self.file(f"{file.name}/*", writes=not reads)
            elif file.name.lower() not in ("stdin", "stdout"):
                self.unknown("a program that COPY starts" if file.name.lower() == "program" else "what COPY does")

    def attach(self, tree: Expr) -> None:
        path = _path(tree.this.this.name if tree.this.key == "alias" else tree.this.name)
        given = ((option.name.lower(), option.args.get("expression")) for option in tree.expressions)
        options = {name: value.sql().lower() if value is not None else "true" for name, value in given}
        prefix, colon, _ = path.partition(":")
        kind = options.get("type", prefix)
        if "type" in options:
            self.doing.network("extensions.duckdb.org", "get")
        if "://" in path.removeprefix("file://") or kind in ("postgres", "mysql"):
            self.doing.network(path if "://" in path else "", "send")
        elif colon and not path.startswith(CLOUD) and re.fullmatch(r"(?!file$|sqlite$|duckdb$)[a-z]\w+", prefix):
            self.unknown(f"what {prefix} attaches")
        else:  # later statements may change it without naming it
            only_reads = options.get("read_only") in ("true", "1") or options.get("access_mode") == "read_only"
            note_database_file(re.sub(r"^(sqlite|duckdb):", "", path), not only_reads, self.doing)

    def extension(self, name: str) -> None:
        if name.lower() not in listed("sql.txt", "@extension"):
            self.unknown(f"what the extension {name} does")

    def setting(self, item: Expr) -> None:
        target = item.this.this if item.this is not None and item.this.key == "eq" else item.this
        name = target.name.lower() if target is not None else str(item.args.get("kind") or "").lower()
        is_own = item.args.get("kind") == "VARIABLE" or (
            target is not None and target.key in ("parameter", "sessionparameter")
        )
        if not is_own and name not in listed("sql.txt", "@setting"):
            self.unknown(f"what the setting {name} does")

    def pragma(self, text: str) -> None:
        match = re.match(r"PRAGMA\s+(?:\w+\.)?(\w+)\s*([=(]?)", text, re.IGNORECASE)
        name = match[1].lower() if match else ""
        if match and name in listed("sql.txt", "@changing_pragma"):
            self.changes = self.changes or bool(match[2]) or name in ("optimize", "wal_checkpoint")
        elif name not in listed("sql.txt", "@pragma") | listed("sql.txt", "@setting"):
            self.unknown(f"what PRAGMA {name} does")

    def command(self, word: str, rest: str) -> None:
        """Record a statement that is only known by its first word."""
        match word:
            case "EXPLAIN":
                before, options = self.changes, _EXPLAIN.match(rest)
                assert options is not None
                self.look(rest[options.end() :])
                if "analyze" not in options[0].lower():
                    self.changes = before
            case "REPLACE":
                self.look(f"INSERT {rest}")
            case "CALL":
                self.look(f"SELECT {rest}")
            case "LOAD":
                self.extension(rest.strip().strip("'"))
            case _ if word in _CHANGING and not re.match(
                r"\s*(or\s+replace\s+)?(\w+\s+)?secret\b", rest, re.IGNORECASE
            ):
                self.changes = True
                if target := re.search(r"\binto\s+'([^']*)'", rest, re.IGNORECASE):
                    self.file(target[1], writes=True)
            case _ if word not in _QUIET:
                self.unknown(f"what {word} does")

    def shell_command(self, word: str, rest: str) -> str:
        r"""Record a command of a database shell (`.tables`, `\dt`); return the SQL that it stands for."""
        arguments = [each.strip("'\"") for each in rest.split()]
        files = [each for each in arguments if not each.startswith("-")]
        match word:
            case "\\copy":
                return f"copy {rest};"
            case ".import" if files and not files[0].startswith("|"):
                self.changes = True
                self.file(files[0])
            case ".output" | ".once" | ".backup" | ".save" | "\\o" if not any(
                each.startswith("|") for each in arguments
            ):
                for file in files[-1:]:
                    self.file(file, writes=True)
            case _ if word not in listed("sql.txt", "@shell_command"):
                self.unknown(f"what {word} does")
        return ""
