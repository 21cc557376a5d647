"""The leaves: packages that each add one capability, and that nothing imports but the rows of this table.

A row is plain names, so that it costs nothing until someone uses the leaf. A name such as `interpreter.mcp.tools:make`
is loaded by `load`. To add a leaf, write its package and a row into `ROWS`; to remove one, delete its folder.
docs/architecture.md shows a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from interpreter.errors import MissingLeafError

_PACKAGE = Path(__file__).parent  # `interpreter`


class Subcommand(NamedTuple):
    """`interpreter mcp add ...`: the exact first words. A single word only counts alone or before a flag.

    A word in capitals, such as FILE, stands for any one that is no flag.
    """

    words: str
    run: str  # (arguments: list[str], with these words) -> exit code
    help: str
    arguments: str = ""  # as `--help` shows them


class Flag(NamedTuple):
    """A flag that starts the leaf instead of a chat."""

    name: str
    run: str  # (parsed: frontends.flags.Parsed) -> exit code
    help: str
    short: str = ""
    value: str = ""  # its name, or the words to choose from; in brackets where it may be left out


class Magic(NamedTuple):
    """A magic command, in a group of `%help`."""

    group: str
    name: str
    run: str  # (terminal, interpreter, argument: str)
    brief: str  # for the overview; empty: another command's names it
    help: str
    arguments: str = ""
    examples: tuple[str, ...] = ()


class Part(NamedTuple):
    """Something that an agent gets from the leaf while a setting is on."""

    when: str  # the setting, such as `os` or `computer.import_skills`; empty: always
    make: str
    files: tuple[str, ...] = ()  # one of which must exist; `{config}` is our folder, `{workspace}` that of the session


class ModelHost(NamedTuple):
    """A place on this machine where models run."""

    prefix: str  # of the models that only it runs, such as `builtin`
    servers: str  # (wait) -> an `llm.model_servers.ModelServers`
    listed: str  # (words, environ) -> an iterable of `app.models.ModelSource`
    problem: str  # (app.models.Remembered) -> why that model can't answer now, or an empty text
    choices: str  # (terminal, others) -> a list of `ModelChoice` for the terminal's setup, with the others in between
    fetch: str  # (terminal, interpreter): gets what the named model lacks


class DiffForm(NamedTuple):
    """Files whose differences are not those of their text, by the ending of their names."""

    ending: str
    lines: str  # (content) -> the lines to compare; ValueError to compare the text


class CodeName(NamedTuple):
    """A name in the user's Python code, found like a builtin: a variable of theirs takes precedence."""

    name: str
    code: str  # the file in the package that defines it, executed where the user's code runs; it may call its tools
    tools: str  # (agent) -> an iterable of `tools.Tool`, each named `NAME.METHOD`


class MoreMethods(NamedTuple):
    """Methods that the leaf adds to a tool of the computer, such as `computer.files`."""

    tool: str
    kind: str  # a class based on the tool's own, with the same name


class Address(NamedTuple):
    """An address of the server, such as `/mcp`, that the leaf answers."""

    path: str
    methods: tuple[str, ...]
    app: str  # async (the server's SessionManager, the user) -> an ASGI application
    help: str


class Method(NamedTuple):
    """A method of `OpenInterpreter`."""

    name: str
    run: str  # (interpreter, ...)


class Leaf(NamedTuple):
    name: str
    package: str  # the folder or module that can be deleted, below `interpreter`
    about: str  # what is missing without it, as the subject of a sentence
    extra: str = ""  # the packages that it needs
    docs: tuple[str, ...] = ()  # its pages, in docs/
    settings: tuple[str, ...] = ()  # those that only it reads
    subcommands: tuple[Subcommand, ...] = ()
    flags: tuple[Flag, ...] = ()
    magics: tuple[Magic, ...] = ()
    prompt: tuple[Part, ...] = ()  # (agent) -> lines for the system message; asked once per conversation
    tools: tuple[
        Part, ...
    ] = ()  # (agent) -> an iterable of `tools.Tool`, for its model and for code, or of `ToolSource`

    cards: tuple[Part, ...] = ()  # (agent, review, context) -> a `policy.review.Forecast` for the question, or None
    diffs: tuple[DiffForm, ...] = ()
    since: tuple[Part, ...] = ()  # (interpreter, commit) -> the diff of each file of the workspace since then
    status: tuple[Part, ...] = ()  # (interpreter) -> a fact for the status line, or an empty text
    notices: tuple[Part, ...] = ()  # (agent) -> what the user reads when a conversation begins
    expansions: tuple[Part, ...] = ()  # (interpreter, typed) -> the message that a line stands for, or None
    endings: tuple[Part, ...] = ()  # (agent) -> what went wrong, at the end of a run without a chat
    follow_ups: tuple[Part, ...] = ()  # (agent, block) -> actions to perform after a block of its model that worked
    undo: tuple[Part, ...] = ()  # (agent, plan) -> the `session.checkpoints.checkpoint.FolderPlan` of its repositories
    observers: tuple[Part, ...] = ()  # (agent) -> an `agent.observer.TurnObserver`, or None
    hosts: tuple[ModelHost, ...] = ()
    public: tuple[str, ...] = ()  # references of what can be imported from `interpreter` itself
    names: tuple[CodeName, ...] = ()
    methods: tuple[Method, ...] = ()
    computer: tuple[MoreMethods, ...] = ()
    addresses: tuple[Address, ...] = ()

    @property
    def is_present(self) -> bool:
        return exists(f"interpreter.{self.package}")


_MCP_FILES = ("{config}/mcp.json", "{config}/mcp-accepted.json", "{workspace}/.mcp.json")

ROWS: tuple[Leaf, ...] = (
    Leaf(
        name="screen",
        package="computer_api.screen",
        about="The screen of the computer",
        extra="os",
        docs=("screen.md", "os-mode.md"),
        settings=("os", "os_max_steps", "os_apps"),
        magics=(
            Magic(
                "Sessions",
                "replay",
                "interpreter.computer_api.screen.commands:replay",
                "screen steps",
                "Show again what the model did on the screen in the last turn, or in turn N.",
                "[N]",
                ("%replay", "%replay 2"),
            ),
        ),
        prompt=(Part("os", "interpreter.computer_api.screen.os_mode:prompt_lines"),),
        observers=(Part("os", "interpreter.computer_api.screen.os_mode:watch_screen"),),
    ),
    Leaf(
        name="browser",
        package="computer_api.browser",
        about="The browser",
        extra="browser",
        docs=("browser.md",),
        settings=(
            "computer.browser_headless",
            "computer.browser_wait",
            "computer.browser_changes",
            "computer.browser_secrets",
        ),
    ),
    Leaf(
        name="people",
        package="computer_api.people",
        about="Mail, calendar and contacts",
        extra="calendar",
        docs=("mail-and-calendar.md",),
    ),
    Leaf(
        name="skills",
        package="computer_api.skills",
        about="`computer.skills`",
        settings=("computer.import_skills", "computer.save_skills", "computer.skills_path"),
        prompt=(Part("computer.import_skills", "interpreter.computer_api.skills:prompt_lines"),),
    ),
    Leaf(
        name="remote",
        package="remote",
        about="Work on another machine",
        docs=("remote.md",),
        settings=("computer.remote", "computer.remotes", "computer.remote_keep", "computer.remote_ssh"),
    ),
    Leaf(
        name="local_models",
        package="local_models",
        about="Using models on this machine",
        extra="local",
        docs=("local-models.md",),
        flags=(
            Flag(
                "local_models",
                "interpreter.local_models.setup:open_models_folder",
                "Open the folder with downloaded models, or print its path.",
            ),
        ),
        hosts=(
            ModelHost(
                "builtin",
                servers="interpreter.local_models.servers:LocalServers",
                listed="interpreter.local_models.listing:sources",
                problem="interpreter.local_models.listing:problem_with",
                choices="interpreter.local_models.setup:choices",
                fetch="interpreter.local_models.setup:fetch_named",
            ),
        ),
    ),
    Leaf(name="in_process", package="languages.in_process", about="Python in your own process"),
    Leaf(
        name="custom_languages",
        package="languages.custom",
        about="A language that a profile describes",
        docs=("custom-languages.md",),
    ),
    Leaf(name="conformance", package="languages.conformance", about="The check of a language"),
    Leaf(name="preview", package="preview", about="The preview", docs=("preview.md",)),
    Leaf(name="containers", package="sandbox.container", about="The sandbox in a container"),
    Leaf(name="table_diffs", package="table_diffs", about="The comparison of tables"),
    Leaf(
        name="viewer",
        package="frontends.viewer",
        about="The viewer of tables and long texts",
        magics=(
            Magic(
                "Data",
                "show",
                "interpreter.frontends.viewer:show",
                "a value",
                "Show a value: a table, a picture or any object. A large table opens on the whole screen, where keys "
                "sort, filter, search, describe, export and copy it. The same as options: sort=COLUMN [desc], "
                "filter=CONDITION, find=TEXT, columns=A,B, rows=N, stats[=COLUMN], export=FILE (.csv, .tsv, .xlsx or "
                ".parquet), copy. The value itself never changes.",
                "name [option=value] ...",
                (
                    "%show df",
                    "%show df sort=total desc rows=10",
                    '%show df filter=region == "EU" and total > 100',
                    "%show df columns=region,total find=berlin",
                    "%show df stats=total",
                    "%show df filter=total > 100 export=large.xlsx",
                    '%show sizes["small"]',
                ),
            ),
            Magic(
                "Other",
                "output",
                "interpreter.frontends.viewer:show_output",
                "all of it",
                "Show all output of the last block, also what was shortened on the screen, such as the log of pip.",
                examples=("%output",),
            ),
        ),
    ),
    Leaf(name="pictures", package="frontends.pictures", about="Pictures and charts in the terminal", extra="images"),
    Leaf(name="scanners", package="scanners", about="Safe mode", extra="scan", docs=("safe-mode.md",)),
    Leaf(
        name="script",
        package="script",
        about="The export as a program",
        magics=(
            Magic(
                "Save",
                "script",
                "interpreter.script.commands:export_script",
                "a program",
                "Write a program from the blocks that produced the result. --all includes every block; --verify runs "
                "it and compares the results.",
                "[path] [--all] [--verify]",
                ("%script", "%script report.py --verify"),
            ),
        ),
    ),
    Leaf(
        name="server",
        package="frontends.server",
        about="The server",
        extra="server",
        docs=("server.md", "web.md", "deploying.md"),
        public=(
            "interpreter.frontends.server.client:connect",
            "interpreter.frontends.server.async_interpreter:AsyncInterpreter",
        ),
        flags=(
            Flag(
                "serve",
                "interpreter.frontends.server.commands:serve_sessions",
                "Serve sessions over HTTP and WebSocket. See docs/server.md.",
            ),
            Flag(
                "web",
                "interpreter.frontends.server.commands:serve_sessions",
                "Serve the web page on this machine and open it in your browser. See docs/web.md.",
            ),
            Flag(
                "server",
                "interpreter.frontends.server.commands:serve_sessions",
                "The same as --serve, as it was called in 0.4.3.",
            ),
            Flag(
                "server_token",
                "interpreter.frontends.server.commands:make_token",
                "Make a token for a user of the server and print it. NAME:viewer can only read.",
                value="NAME",
            ),
        ),
    ),
    Leaf(
        name="agents",
        package="agents",
        about="`ask` and `agent` in code",
        docs=("ask.md", "agents.md"),
        settings=(
            "agents",
            "agents_depth",
            "agents_total",
            "agents_at_once",
            "agents_budget",
            "agents_tokens",
            "agents_seconds",
            "agents_memory",
        ),
        magics=(
            Magic(
                "Other",
                "agent",
                "interpreter.agents.commands:agent",
                "and %agents",
                "Have a sub-agent do a task in a copy of the session. --model M: another model. --as NAME: an agent of "
                "your files. --background: without waiting.",
                "[--model M] [--as NAME] [--background] task",
                ("%agent find out why test_parser fails", "%agent --background summarize the reports"),
            ),
            Magic(
                "Other",
                "agents",
                "interpreter.agents.commands:agents",
                "",
                "Show the sub-agents with state, cost and last line. Look at one, stop it, answer its question, accept "
                "or drop its changes.",
                "[diff|accept|drop|stop|look N | answer N text | files | trust NAME]",
                ("%agents", "%agents diff 2", "%agents accept 2"),
            ),
            Magic(
                "Forks",
                "best",
                "interpreter.agents.commands:best",
                "of N tries",
                "Try a task N times in forks, and keep the best: the answer that most agree on, or what --judge "
                "prefers: `model`, or `!command`, whose last number counts. --models A,B takes turns.",
                "[--judge J] [--models A,B] N task",
                ("%best 3 what is the median price?", "%best --judge '!make test' 4 fix the failing test"),
            ),
            Magic(
                "Forks",
                "retry",
                "interpreter.agents.commands:retry_with",
                "another model",
                "Have another model try again from a checkpoint, in a fork; see both side by side, and keep one.",
                "K --model M",
                ("%retry 4 --model gpt-4o",),
            ),
        ),
        tools=(Part("agents", "interpreter.agents.calls:make_tools"),),
        methods=(Method("best_of", "interpreter.agents.tries:best_of"),),
        names=(
            CodeName("ask", "code_names.py", "interpreter.agents.asking:make_tools"),
            CodeName("agent", "code_names.py", "interpreter.agents.calls:make_code_tools"),
        ),
    ),
    Leaf(
        name="mcp",
        package="mcp",
        about="MCP",
        extra="mcp",
        docs=("mcp.md", "mcp-server.md"),
        settings=("mcp", "mcp_prompt_tokens", "mcp_native"),
        subcommands=(
            Subcommand(
                "mcp add",
                "interpreter.mcp.commands:add",
                "Add an MCP server, and try it.",
                "NAME URL | NAME [--env KEY=VALUE] -- COMMAND ...",
            ),
            Subcommand("mcp list", "interpreter.mcp.commands:list_servers", "List your MCP servers."),
            Subcommand("mcp remove", "interpreter.mcp.commands:remove", "Remove an MCP server.", "NAME"),
            Subcommand("mcp test", "interpreter.mcp.commands:test", "Start an MCP server and list its tools.", "NAME"),
        ),
        flags=(
            Flag(
                "mcp",
                "interpreter.mcp.commands:serve",
                "Be an MCP server over standard input and output, for Claude Code, VS Code and others.",
            ),
        ),
        magics=(
            Magic(
                "Other",
                "mcp",
                "interpreter.mcp.commands:magic",
                "MCP servers",
                "Show the MCP servers with their state and what they wrote last. `off` and `on` turn one off for this "
                "session; `prompt` sends a prompt of a server; `accept` uses the servers of a file that others wrote.",
                "[off NAME | on NAME | stop NAME | prompt NAME.PROMPT KEY=VALUE ... | accept]",
                ("%mcp", "%mcp off github", "%mcp prompt github.review pr=5", "%mcp accept"),
            ),
        ),
        expansions=(Part("mcp", "interpreter.mcp.commands:expand", _MCP_FILES),),
        prompt=(Part("mcp", "interpreter.mcp.tools:prompt_lines", _MCP_FILES),),
        tools=(Part("mcp", "interpreter.mcp.tools:make_tools", _MCP_FILES),),
        addresses=(
            Address(
                "/mcp", ("POST", "GET", "DELETE"), "interpreter.mcp.serving:application", "Sessions for MCP clients"
            ),
        ),
    ),
    Leaf(
        name="repo",
        package="repo",
        about="Work in repositories",
        docs=("repositories.md",),
        settings=("card_diff", "diff_file"),
        magics=(
            Magic(
                "Other",
                "commit",
                "interpreter.repo.commands:commit",
                "these changes",
                "Commit what this session's blocks changed, and nothing else: your own changes stay uncommitted. "
                "Without a message, the model writes one. --own includes blocks that you ran yourself.",
                "[--own] [message]",
                ("%commit", "%commit Fix the price of pens"),
            ),
        ),
        prompt=(
            Part("", "interpreter.repo.tools:prompt_lines", ("{workspace}/.git",)),
            Part("", "interpreter.repo.instructions:prompt_lines"),
        ),
        since=(Part("", "interpreter.repo.ci:since"),),
        status=(Part("", "interpreter.repo.status:branch", ("{workspace}/.git",)),),
        notices=(Part("", "interpreter.repo.instructions:notices"),),
        expansions=(Part("", "interpreter.repo.instructions:expand"),),
        endings=(Part("", "interpreter.repo.ci:end_run"),),
        tools=(Part("", "interpreter.repo.tools:make_tools", ("{workspace}/.git",)),),
        computer=(MoreMethods("files", "interpreter.repo.files:Files"),),
        follow_ups=(Part("", "interpreter.repo.definitions:offer_to_save"),),
        undo=(Part("", "interpreter.repo.undo:plan_repositories"),),
        cards=(Part("card_diff", "interpreter.repo.card:forecast"),),
        diffs=(DiffForm(".ipynb", "interpreter.repo.notebooks:lines_to_compare"),),
    ),
    Leaf(
        name="batch",
        package="batch",
        about="`interpreter batch`",
        docs=("batch.md",),
        methods=(Method("batch", "interpreter.batch.commands:batch"),),
        subcommands=(
            Subcommand(
                "batch FILE --out",
                "interpreter.batch.commands:start",
                "Run each row of a file as a task, and write each result once.",
                "FILE ...",
            ),
            Subcommand("batch --help", "interpreter.batch.commands:print_help", "List the flags of a batch."),
            Subcommand("batch status FILE", "interpreter.batch.commands:status", "Print how far a batch is."),
            Subcommand("batch-worker", "interpreter.batch.worker:main", "Run tasks for a batch, as it does itself."),
        ),
    ),
    Leaf(name="notebook", package="frontends.notebook", about="The display in Jupyter notebooks", extra="jupyter"),
    Leaf(
        name="wtf",
        package="frontends.wtf",
        about="`wtf`",
        docs=("wtf.md",),
        flags=(
            Flag(
                "shell_hook",
                "interpreter.frontends.wtf:print_hook",
                "Print the lines that `wtf` needs in your shell's rc file.",
                value="bash|zsh",
            ),
        ),
    ),
)


@cache
def leaves() -> tuple[Leaf, ...]:
    """List the leaves that this installation has."""
    return tuple(leaf for leaf in ROWS if leaf.is_present)


def subcommand(arguments: Sequence[str]) -> Subcommand | None:
    """Find the subcommand that a command line begins with."""
    for row in (row for leaf in ROWS for row in leaf.subcommands):
        words = row.words.split()
        rest = arguments[len(words) :]
        if len(arguments) >= len(words) and all(map(_fits, words, arguments)):
            is_open = len(words) > 1 and not words[-1].isupper()
            if is_open or not rest or rest[0].startswith("-"):
                return row
    return None


def _fits(word: str, argument: str) -> bool:
    return not argument.startswith("-") if word.isupper() else argument == word


def hosts(*, needed: bool = False) -> list[ModelHost]:
    """List where models can run on this machine; with `needed`, also what this installation lacks."""
    return [host for leaf in (ROWS if needed else leaves()) for host in leaf.hosts]


@cache
def methods() -> dict[str, str]:
    """Map the methods that leaves add to `OpenInterpreter` to the functions they call."""
    return {method.name: method.run for leaf in ROWS for method in leaf.methods}


@cache
def exists(reference: str) -> bool:
    """Look for the package or module of a reference without importing it."""
    path = _PACKAGE.parent.joinpath(*reference.partition(":")[0].split("."))
    return (path / "__init__.py").is_file() or path.with_suffix(".py").is_file()


def public_names() -> dict[str, str]:
    """Map the public names of the package that leaves define to their references."""
    return {reference.partition(":")[2]: reference for leaf in ROWS for reference in leaf.public}


def code_names() -> tuple[str, ...]:
    """List the names that leaves define in code."""
    return tuple(row.name for leaf in leaves() for row in leaf.names)


def code_of(name: str) -> str:
    """Return the source of the file that defines this name for code."""
    files = (
        _PACKAGE.joinpath(*leaf.package.split("."), row.code)
        for leaf in leaves()
        for row in leaf.names
        if row.name == name
    )
    return next(files).read_text(encoding="utf-8")


def leaf_of(reference: str) -> Leaf | None:
    """Find the leaf that a reference leads into; None if it leads into the core."""
    module = f"{reference.partition(':')[0]}."
    return next((leaf for leaf in ROWS if module.startswith(f"interpreter.{leaf.package}.")), None)


def load(reference: str) -> Any:
    """Import what a reference such as `package.module:name` names.

    Raises MissingLeafError if its leaf was deleted, or needs an extra.
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        leaf = leaf_of(reference)
        is_ours = (error.name or "").partition(".")[0] == __package__
        if leaf is None or (leaf.is_present and (is_ours or not leaf.extra)):
            raise
        from interpreter.host.installation import install_hint

        advice = (
            f"needs extra packages: {install_hint(leaf.extra)}"
            if leaf.is_present
            else "is not part of this installation. Install Open Interpreter again to get it."
        )
        raise MissingLeafError(f"{leaf.about} {advice}") from error
