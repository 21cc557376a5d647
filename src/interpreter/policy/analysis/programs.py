"""What a command would do, by its program. An unknown program may do anything.

Most of it is in tables/programs.txt. The functions here look at programs whose arguments need more than a table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from interpreter.policy.analysis.notes import (
    HOLE,
    ON_PATHS,
    Notes,
    StepEffects,
    analyze_embedded,
    is_of_system,
)
from interpreter.policy.analysis.sql import ANY, DIALECTS, note_database_file, note_sql
from interpreter.policy.analysis.tables import EffectRule, ProgramRow, listed, programs

# A change of these variables changes what other commands do.
INFLUENTIAL = re.compile(
    r"\w*PATH|IFS|ENV|SHELLOPTS|BASH\w*|PROMPT_COMMAND|PS[0-4]|HOME|O?L?D?PWD|ZDOTDIR|INPUTRC|HISTFILE|\w*IGNORE|TERMINFO"
    r"|(?i:\w*_proxy)|\w*(VISUAL|EDITOR|PAGER|BROWSER|SHELL|OPTIONS?|OPTS|ARGS|CONFIG|_RSH|_SSH|ASKPASS|FLAGS)"
    r"|(LD|DYLD|NODE|GIT|SSH|R|XDG|CURL|PIP|NPM|npm|UV|AWS|SSL|OPENSSL|MALLOC|GREP|RIPGREP|DOCKER|JUPYTER|MYSQL|TAR|XML)_\w+"
    r"|(PYTHON|PERL|RUBY|LESS|MAN|JAVA|LUA|KUBE|IPYTHON|MPL|SQLITE|PG)\w*"
)
# With these, `cp` copies links as links.
_KEEPING_LINKS = ("-a", "-d", "-P", "-R", "-r", "--archive", "--no-dereference", "--recursive")
# A placeholder in a row for operands or for options' values.
_PLACEHOLDER = re.compile(r"<(?:(?P<first>\d)(?P<more>\+?)|(?P<options>-[^>]*?))(?:\|(?P<default>[^->][^>]*))?>")


class CommandCall(NamedTuple):
    """A command as it is called."""

    words: list[str]
    line: int
    text: str
    stdin: str | None = None  # its input, if the text contains it
    functions: Iterable[str] = ()  # functions that the code itself defines, which were analyzed at their definition
    piped: str = ""  # the probable output of another command, which it reads

    @property
    def arguments(self) -> list[str]:
        return self.words[1:]

    @property
    def program(self) -> str:
        return self.words[0].rsplit("/", 1)[-1]

    @property
    def plain(self) -> list[str]:
        """Return the arguments that are not options."""
        return [word for word in self.arguments if not word.startswith("-")]


class Arguments:
    """`-rf --out=x a b` as options `{-r, -f, --out}`, values `{--out: [x]}` and operands `[a, b]`."""

    def __init__(self, words: Sequence[str], row: ProgramRow | str = "", stop_early: bool = False) -> None:
        """Parse `words`. `row`: its options, or names of those that take a word; `stop_early`: end at an operand."""
        self.options: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.operands: list[str] = []
        self._takes = dict.fromkeys(row.split(), "=") if isinstance(row, str) else row.options
        left = list(reversed(words))
        while left:
            word = left.pop()
            is_option = len(word) > 1 and word.startswith("-")
            if word == "--" or (stop_early and not is_option):
                self.operands += ([] if word == "--" else [word]) + left[::-1]
                return
            if not is_option:
                self.operands.append(word)
            elif word.startswith("--") or word in self._takes:
                name, equals, value = word.partition("=")
                takes_next = left and self._takes.get(name) in ("=", "=*")
                self._add(name, [value] if equals else [left.pop()] if takes_next else [])
            elif word[1:].isdigit() and "-#" in self._takes:
                self._add("-#", [word[1:]])
            else:
                self._letters(word, left)
            if any(self._takes.get(option) == "=*" for option in self.options):
                self.operands, left = [*self.operands, *reversed(left)], []

    def _letters(self, word: str, left: list[str]) -> None:
        for at, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            takes = self._takes.get(name)
            if takes:
                own = word[at:]
                self._add(name, [own] if own or takes == "=?" else [left.pop() if left else ""])
                return
            self._add(name, [])

    def _add(self, name: str, values: list[str]) -> None:
        self.options.add(name)
        if values:
            self.values.setdefault(name, []).extend(values)

    def has(self, *names: str) -> bool:
        return not self.options.isdisjoint(names)

    def value(self, *names: str) -> list[str]:
        """Return the values given to any of these options."""
        return [value for name in names for value in self.values.get(name, ())]


Handler = Callable[[CommandCall, Arguments, StepEffects, Notes], None]
HANDLERS: dict[str, Handler] = {}


def handler(function: Handler) -> Handler:
    """Let the table name this function: `sed: code sed`."""
    HANDLERS[function.__name__] = function
    return function


def analyze_command(call: CommandCall, notes: Notes) -> None:
    doing = notes.step("shell", call.text, call.line, call.words)
    if not call.words or call.words[0] in call.functions:
        return
    name, program = call.words[0], call.program
    if HOLE in name:
        doing.unknown("a command whose name is only known at run time")
        return
    if program in ("tar", "bsdtar", "gtar") and call.arguments and not call.arguments[0].startswith("-"):
        call = call._replace(words=[name, f"-{call.arguments[0]}", *call.arguments[1:]])  # `tar xf` is `tar -xf`
    row = programs().get(program)
    local = "/" in name and not is_of_system(name)
    starts = row is not None and not row.verbs and any(rule.kind == "start" for rule in row.effects)  # anything
    if program not in listed("programs.txt", "@builtins"):
        doing.program(name if local else program, known=row is not None and not starts and not local)
    if row is not None and not local:
        _ByTable(program, row, call, doing, notes).apply()


class _ByTable:
    def __init__(self, program: str, row: ProgramRow, call: CommandCall, doing: StepEffects, notes: Notes) -> None:
        self.program, self.row, self.call, self.doing, self.notes = program, row, call, doing, notes
        self.arguments = Arguments(
            call.arguments, row, row.effects[0].what in listed("programs.txt", "@before_commands")
        )
        self.operands = self.arguments.operands
        self.host = ""

    def apply(self) -> None:
        given, listed = self.arguments.options, self.row.options
        unlisted = {option for option in given if option not in listed and option not in {"--help", "--version"}}
        if unlisted and "*" not in listed:
            self.doing.unknown(f"{self.program} {min(unlisted)}, an unknown option")
        values = [value for given in self.arguments.values.values() for value in given]
        if self.row.like and any(map(self.row.like.search, [*self.operands, *values])):
            self.doing.unknown(f"{self.program} with an argument that may start programs or change its behavior")
        if self.row.effects[0].kind == "code":
            for option in sorted(given & self.row.adds.keys()):
                self._option(option)
            if EffectRule("unknown") in self.row.effects:
                self.doing.unknown(f"{self.program} changes the permissions of the command")
            return HANDLERS[self.row.effects[0].what](self.call, self.arguments, self.doing, self.notes)
        rules, skip = self._rules(), any(rule.kind == "skip" for rule in self.row.effects)
        added = [rule for option in sorted(given & self.row.adds.keys()) for rule in self._option(option)]
        instead = ("instead",) if unlisted else ("instead", "only")
        rules = tuple(EffectRule(*rule.what.split(" ", 1)) for rule in added if rule.kind in instead) or rules
        also = tuple(EffectRule(*rule.what.split(" ", 1)) for rule in added if rule.kind == "also")
        if skip and EffectRule("no", "skip") not in added:
            self.operands = self.operands[1:]
        if not self.operands and any(rule.kind == "here" for rule in (*rules, *also)):
            self.doing.look_into(".")
        if any(rule.kind == "tree" for rule in also):
            rules = tuple(rule for rule in rules if rule.kind != "delete")
        for rule in (*rules, *also):
            self._operands(rule)
        return None

    def _rules(self) -> tuple[EffectRule, ...]:
        """Return the effects on the operands, which for some programs depend on the first operand."""
        row = self.row
        if not row.verbs:
            return row.effects
        start = 1 if EffectRule("skip") in row.effects else 0
        operands = [word for word in self.operands if word not in row.prefixes]
        verb = "".join(operands[start : start + 1])
        if not verb:
            options = self.arguments.options
            only_asks = (
                options <= listed("programs.txt", "@asks_version") if options else EffectRule("start") in row.effects
            )
            return () if only_asks and not self.operands else row.effects
        self.operands = operands
        rules = row.verbs.get(verb, row.verbs.get("*"))
        if rules is not None:
            self.operands = operands[:start] + operands[start + 1 :]
        return rules if rules is not None else row.effects

    def _option(self, option: str) -> list[EffectRule]:
        """Apply what an option does with its value; return the rules about the operands."""
        left = []
        for rule in self.row.adds[option]:
            values = self.arguments.values.get(option, [])
            match rule.kind:
                case "read" | "write":
                    self.doing.on_paths(rule.kind, *values)
                case "run":
                    for value in values:
                        nested(value, self.call, self.notes)
                case "host":
                    self.host = "".join(values[-1:])
                case "install":
                    for value in values:
                        self.doing.note("install", f"{rule.what} {value}".strip(), how=self.program)
                case "local" if any(":" in value for value in values):
                    self.doing.unknown(f"{self.program} with an archive on another machine")
                case "unknown":
                    self.doing.unknown(f"{self.program} {option} may start programs or change its behavior")
                case _:
                    left.append(rule)
        return left

    def _filled(self, word: str) -> list[str]:
        """Fill in a placeholder. `<1>`: first operand; `<2+>`: second and later; `<-d|.>`: value of -d, or a dot."""
        placeholder = _PLACEHOLDER.search(word)
        if placeholder is None:
            return [word]
        if placeholder["first"]:
            at = int(placeholder["first"]) - 1
            values = self.operands[at:] if placeholder["more"] else self.operands[at : at + 1]
        else:
            values = self.arguments.value(*placeholder["options"].split("|"))
        return [word.replace(placeholder[0], value) for value in values or filter(None, [placeholder["default"]])]

    def _operands(self, rule: EffectRule) -> None:
        doing, kind = self.doing, rule.kind
        paths = [path for word in rule.what.split() for path in self._filled(word)] if rule.what else self.operands
        match kind:
            case word if word in ON_PATHS:
                doing.on_paths(word, *paths)
                for path in paths:
                    if word in ("read", "write") and "://" in path:
                        doing.network(path, "get")
            case "copy" | "move":
                folder = self.arguments.value("-t", "--target-directory")
                sources, targets = (paths, folder) if folder else (paths[:-1], paths[-1:])
                doing.read(*sources)
                if kind == "move":
                    doing.delete(*sources, tree=True, operation="rename")
                links = self.program == "ln" or self.arguments.has("-l", "-s", "--link", "--symbolic-link")
                if links and not sources:
                    sources, targets = targets, [path.rstrip("/").rsplit("/", 1)[-1] for path in targets]
                doing.write(*targets, operation="rename" if kind == "move" else "link" if links else "")
                if links or self.arguments.has(*_KEEPING_LINKS):
                    is_hard = not self.arguments.has("-s", "--symbolic", "--symbolic-link")
                    for target, source in ((target, source) for target in targets for source in sources):
                        for path in (target, f"{target}/{source.rstrip('/').rsplit('/', 1)[-1]}") if links else ():
                            doing.location.link(path, source, is_hard)
                        if not links:
                            doing.location.copy(source, target)
            case "unpack":
                for path in paths:
                    doing.unpack(path)
            case "kill":
                command = " ".join([self.program, *self.call.plain]).replace(HOLE, "*")
                doing.note("kill", f"{rule.what or 'processes'} ({command})")
            case "get" | "send":
                doing.network(self.host or (rule.what or "".join(paths[:1])).removesuffix("?"), kind)
            case "install" | "remove":
                for package in self.operands or [f"what {self.program} chooses"]:
                    doing.note("install", package, how="remove" if kind == "remove" else self.program)
            case "database":
                doing.note("database", self.program, how="server")
            case "unknown" if self.operands:
                doing.unknown(f"{self.program} changes the system")
            case "secret":
                doing.note("secret", "the environment")
            case "system" | "disk":
                devices = [path for path in paths if kind == "disk" and path.startswith("/dev/")]
                doing.write(*devices, *(path for path in paths[-1:] if path.startswith("/")), how="system")
                doing.unknown(f"{self.program} changes the system")
            case "start" if self.row.verbs or self.operands:
                doing.program(" ".join([self.program, *self.operands[:1]]), known=False)


# -- programs that start other programs ---------------------------------------------------------------------------

# So many words come before the command.
_BEFORE_COMMAND = {"timeout": 1, "chrt": 1, "chroot": 1, "flock": 1, "taskset": 1}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@handler
def wrapper(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    name = call.program
    if name == "command" and {"-v", "-V"} & set(call.arguments[:1]):
        return
    command = arguments.operands[_BEFORE_COMMAND.get(name, 0) :]
    while command and _ASSIGNMENT.match(command[0]):
        note_environment(command[0].partition("=")[0], doing)
        command = command[1:]
    if name == "flock":
        doing.write(*arguments.operands[:1], operation="create")
    if not command and call.stdin is not None:
        nested(call.stdin, call, notes)
    for text in arguments.value("-S", "--split-string", "-c"):
        nested(text, call, notes)
    if name == "env" and not command:
        doing.note("secret", "the environment")
    if command and name == "watch":
        nested(" ".join(command), call, notes)  # it hands them to a shell
    elif command:
        doing.dropped = all(effect.kind == "program" for effect in doing.effects)
        _inner(command, call, notes)


@handler
def xargs(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    mark = next(iter(arguments.value("-I", "--replace")), "{}")
    command = [word.replace(mark, HOLE) for word in arguments.operands] or ["echo"]
    _inner([*command, HOLE], call, notes)


def _interpret(
    language: str,
    codes: list[str],
    runs_nothing: str,
    call: CommandCall,
    arguments: Arguments,
    doing: StepEffects,
    notes: Notes,
) -> None:
    """Analyze what an interpreter runs: `codes`, a script, or its input (unless it has an option of `runs_nothing`)."""
    if codes:
        for code in codes:
            nested(code, call, notes, language)
    elif arguments.operands and (arguments.operands[0] != "-" or language == "shell"):
        _script(arguments.operands[0], doing)
    elif call.stdin is not None:
        nested(call.stdin, call._replace(line=call.line + 1), notes, language)
    elif not arguments.has(*runs_nothing.split()):
        doing.unknown(f"{call.words[0]} runs what it reads")
        if call.piped:
            nested(call.piped, call, notes, language)


@handler
def shell(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    if call.program == "su":
        doing.unknown("su: runs as another user")
        arguments.operands = []  # the user
    _interpret("shell", arguments.value("-c", "--command"), "--version --help", call, arguments, doing, notes)


@handler
def runs_arguments(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    match call.program:
        case "eval":
            nested(" ".join(call.arguments), call, notes)
        case "source" | ".":
            _script("".join(call.arguments[:1]), doing)
        case "alias":
            for _, code in (word.split("=", 1) for word in call.arguments if "=" in word):
                doing.unknown("an alias changes what a command means")
                nested(code, call, notes)
        case "trap" if len(call.arguments) > 1 and call.arguments[0] not in ("-", "", "-p", "-l"):
            nested(call.arguments[0], call, notes)


@handler
def python(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    module, rest = "".join(arguments.value("-m")[:1]), arguments.operands
    match module:
        case _ if arguments.has("-c") or not arguments.has("-m"):
            _interpret("python", arguments.value("-c"), "--version -V -h --help", call, arguments, doing, notes)
        case "pip" | "uv" | "ipython" | "black" | "ruff" | "mypy":
            _inner([module, *rest], call, notes)
        case "venv":
            doing.write(*(word for word in rest if not word.startswith("-")))
        case "http.server":
            doing.network("", "send")
        case "json.tool":
            operands = Arguments(rest, "--indent").operands
            doing.read(*operands[:1])
            doing.write(*operands[1:])
        case "timeit":
            timed = Arguments(rest, "-n -r -s -u --number --repeat --setup --unit")
            for code in [*timed.operands, *timed.value("-s", "--setup")]:
                nested(code, call, notes, "python")
        case _ if module not in listed("programs.txt", "@python_modules"):
            doing.program(f"python -m {module}", known=False)


@handler
def node(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    if call.words[0] in ("bun", "deno") and arguments.operands[:1] in (["install"], ["add"], ["i"]):
        for package in arguments.operands[1:] or ["what package.json runs"]:
            doing.note("install", package, how=call.words[0])
        doing.network("registry.npmjs.org", "get")
    else:
        codes = arguments.value("-e", "-p", "--eval", "--print")
        _interpret("javascript", codes, "--version -v -h --help", call, arguments, doing, notes)


@handler
def other_language(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    if call.arguments not in (["--version"], ["-v"], ["-V"], ["-version"]):
        doing.unknown(f"a program inside {call.words[0]}, which isn't analyzed")


def _script(path: str, doing: StepEffects) -> None:
    doing.read(path)
    doing.unknown(f"what {path or 'a script'} does".replace(HOLE, "*"))


def nested(code: str, call: CommandCall, notes: Notes, language: str = "shell") -> None:
    before = notes.location.cwd
    analyze_embedded(language, code, call.line, notes)
    if call.words[0] not in ("eval", "trap"):
        notes.location.cwd = before


def _inner(words: list[str], call: CommandCall, notes: Notes) -> None:
    if notes.too_deep:
        notes.not_known("shell", "deeply nested commands", call.line)
    else:
        notes.depth += 1
        analyze_command(CommandCall(words, call.line, " ".join(words), call.stdin, call.functions, call.piped), notes)
        notes.depth -= 1


# -- builtins of the shell ----------------------------------------------------------------------------------------

# Where the shell expects a variable or a number, it runs the command in such an index, quoted or not.
COMMAND_IN_INDEX = re.compile(r"\w\[[^\]]{0,200}(\$\(|`|\0)")


def note_changed(name: str, doing: StepEffects) -> None:
    """Record that a variable is set if it changes what later commands do."""
    if INFLUENTIAL.fullmatch(name):
        doing.unknown(f"{name} is changed, which changes what commands do")


def note_environment(name: str, doing: StepEffects) -> None:
    """Record that an environment variable is set, unless it is listed as harmless: programs may read it."""
    if not any(fnmatchcase(name, harmless) for harmless in listed("programs.txt", "@environment")):
        doing.unknown(f"{name} is set in the environment, which may change what programs do".replace(HOLE, "*"))


@handler
def sets_variables(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    """Record the variables that the command may set. Some of its arguments are variable names, some are code."""
    name = call.program
    arguments = Arguments(call.arguments, "-v -C" if name in ("printf", "mapfile") else "")
    declares = name in ("export", "declare", "typeset", "readonly", "set")
    if declares and (arguments.has("-p") or not call.arguments):
        doing.note("secret", "the environment")
    if name in ("declare", "typeset", "local") and arguments.has("-n"):
        doing.unknown("a reference to another variable")
    names = call.arguments if name not in ("let", "test", "[", "printf", "set") else arguments.value("-v")
    for variable in (word.partition("=")[0].rstrip("+") for word in names if not word.startswith("-")):
        if name == "export" or (declares and arguments.has("-x")):
            note_environment(variable, doing)
        else:
            note_changed(variable, doing)
    if any(map(COMMAND_IN_INDEX.search, call.arguments)):
        doing.unknown("a command in an array index")
    for code in Arguments(call.arguments, "-C").value("-C") if name in ("mapfile", "readarray") else ():
        nested(code, call, notes)


@handler
def change_folder(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    operands = [word for word in call.arguments if word == "-" or not word.startswith("-")]
    is_back = operands == ["-"] or call.program == "popd" or (call.program == "pushd" and not operands)
    notes.location.move(None if is_back else operands[0] if operands else "~")


# -- files --------------------------------------------------------------------------------------------------------


_ADDRESS = r"(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SED = re.compile(
    rf"\s*(?:{_ADDRESS}(?:\s*[,~]\s*[+~]?{_ADDRESS})?\s*!?\s*)?"
    r"(?:[pdqlPDGHghxnNz={}]\d*|[aic]\\?[^\n]*|[bt]\s*\w*|:\w+"
    r"|[sy](?P<mark>[^\w\s\\])(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)[gpiI\d]*|#[^\n]*)?\s*(?:;|\n|(?=[}])|$)"
)


@handler
def sed(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    """Record what its scripts do: one that only prints is understood; any other may access files or run commands."""
    scripts = arguments.value("-e", "--expression")
    has_script = bool(scripts) or arguments.has("-f", "--file")
    files = arguments.operands if has_script else arguments.operands[1:]
    for script in scripts or arguments.operands[:1]:
        at = 0
        while at < len(script) and (command := _SED.match(script, at)) and command.end() > at:
            at = command.end()
        if at < len(script):
            doing.unknown("a sed script that may write files or run commands")
    doing.read(*files)
    if arguments.has("-i", "--in-place"):
        doing.write(*files, operation="edit")
        for suffix in arguments.value("-i", "--in-place"):
            doing.write(*(_copy_by_sed(file, suffix) for file in files))


def _copy_by_sed(file: str, suffix: str) -> str:
    """Name the copy that `sed -i.bak` or `sed -i'old/*'` leaves of a file."""
    folder, slash, name = file.rpartition("/")
    copy = suffix.replace("*", name) if "*" in suffix else name + suffix
    return copy if "/" in suffix else f"{folder}{slash}{copy}"


_AWK_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|#[^\n]*')
_AWK_ACTS = re.compile(r"\b(system|getline|close|fflush|ENVIRON|PROCINFO)\b|@|(?<!\|)\|(?!\|)|\bprintf?\b[^;}\n]*>")


# In a regular expression these characters begin no string or comment and end no statement.
_AWK_UNCLEAR = re.compile(r"/[^/\n]*[\"#;}][^/\n]*/")
_AWK_MAY_ACT = re.compile(rf"{_AWK_ACTS.pattern}|\bprintf?\b[^\0]*>")


@handler
def awk(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    script = "" if arguments.has("-f", "--file") else "".join(arguments.operands[:1])
    doing.read(*(word for word in arguments.operands[bool(script) :] if not _ASSIGNMENT.match(word)))
    script = re.sub(r"\\\n|,\s*\n", " ", script)
    if (
        HOLE in script
        or _AWK_ACTS.search(_AWK_TEXT.sub('""', script))
        or (_AWK_UNCLEAR.search(script) and _AWK_MAY_ACT.search(script))
    ):
        doing.unknown("an awk program that may write files or run commands")


@handler
def dd(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    for word in call.arguments:
        name, _, value = word.partition("=")
        match name:
            case "if":
                doing.read(value)
            case "of":
                doing.write(value)
            case _ if HOLE in word:
                doing.unknown("dd with arguments built at run time")


@handler
def find(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    words, options = call.arguments, programs()[call.program].options
    follows = "-follow" in words or "-L" in words
    while call.program == "find" and words and re.fullmatch(r"-[HLP]|-O\d", words[0]):
        words = words[1:]
    start = next((at for at, word in enumerate(words) if word[:1] in ("-", "(", "!")), len(words))
    roots = words[:start] or ["."]
    doing.path("read", *roots, how="names")
    # With options before them, the folders of `fd` are not looked for.
    is_clear = not follows and (start or call.program == "find")
    paths = [f"{root.rstrip('/')}/*" for root in roots] if is_clear else [HOLE]
    left = words[start:]
    while left:
        word = left.pop(0)
        match word:
            case "-delete":
                doing.delete(*paths, tree=True)
            case "-fprint" | "-fprintf" | "-fls" | "-fprint0":
                doing.write(*left[:1])
            case "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch":
                end = next((at for at, word in enumerate(left) if word in (";", "+")), len(left))
                inner = [
                    path for word in left[:end] for path in (paths if word == "{}" else [word.replace("{}", HOLE)])
                ]
                inner += paths if call.program != "find" and "{}" not in left[:end] else []
                analyze_command(CommandCall(inner, call.line, " ".join(inner), None, call.functions), notes)
                left = left[end + 1 :]
            case _ if call.program == "find" and ((word.startswith("-") and word not in options) or HOLE in word):
                doing.unknown(f"find {word}, an unknown option".replace(HOLE, "*"))
        if left and options.get(word) == "=":
            left.pop(0)


@handler
def patch(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    doing.read(*arguments.value("-i", "--input"), *arguments.operands[1:])
    folder = next(iter(arguments.value("-d", "--directory")), ".")
    doing.write(*(arguments.operands[:1] or [f"{folder}/*"]), *arguments.value("-o", "--output"))


# -- git ----------------------------------------------------------------------------------------------------------

_GIT_PLAIN_SETTING = re.compile(r"user\.|color\.|init\.defaultbranch$|pull\.rebase$|push\.default$", re.IGNORECASE)
# The options of a verb that take a word. Others of `clone` are not listed, so that they are "can't tell".
_GIT_VALUES = {
    "": "-m -F -b -B -o --output --message --branch --origin --depth",
    "clone": "-b -o -j -c -u --branch --origin --depth --jobs",
    "log": "-n --output --max-count",
}
_GIT_BRANCH_CHANGES = re.compile(r"-[a-zA-Z]*[dDmMcCfut]|--(delete|move|copy|force|set-up|unset-up|edit|track)")
_GIT = ("@git_reads", "@git_writes", "@git_get", "@git_send")


@handler
def git(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    top = Arguments(call.arguments, "-C -c --git-dir --work-tree --namespace --exec-path", stop_early=True)
    folder = next(iter(top.value("-C", "--work-tree", "--git-dir")), ".")
    doing.look_into(folder)
    if top.has("-c", "-p", "--paginate", "--exec-path", "--config-env", "--git-dir"):
        doing.unknown("git with a setting that may start programs")
    if not top.operands:
        return
    verb, rest = top.operands[0], top.operands[1:]
    kind = next((kind for kind in _GIT if verb in listed("programs.txt", kind)), "")
    arguments = Arguments(rest, _GIT_VALUES.get(verb, _GIT_VALUES[""]))
    hidden = [
        word for word in rest if word.startswith(("--output=", "--open-files-in-pager", "-O")) or word == "--output"
    ]
    if verb == "remote":
        rest = [word for word in rest if word not in ("-v", "--verbose")] or rest
    if verb == "remote" and "-n" not in rest:
        asks = rest[:1] == ["show"] and len(arguments.operands) > 1
        if asks or rest[:1] in (["prune"], ["update"]) or {"-f", "-a", "--auto"} & set(rest):
            doing.network("", "get")
    if verb == "archive" and (remote := [word for word in rest if word.startswith("--remote")]):
        doing.network(remote[0].partition("=")[2], "get")
    if (verb == "reflog" and {"delete", "expire", "drop", "write"} & set(rest[:1])) or "--lost-found" in rest:
        kind = "@git_writes"
    if hidden and not arguments.has("--output", "-O", "--open-files-in-pager"):
        doing.unknown(f"git {hidden[0]}")
    doing.write(*arguments.value("--output", "-o"))
    doing.read(*(word for word in arguments.operands if kind == "@git_reads" and word.startswith(("/", "~", ".."))))
    if arguments.has("-O", "--open-files-in-pager", "-x", "--edit", "-e") and verb not in ("clean", "add"):
        doing.unknown("git may start programs")
    first = rest[0] if rest else ""
    only_lists = "=".join(filter(None, [verb, first])) in listed("programs.txt", "@git_lists")
    if verb == "config" and len(rest) == 1:
        only_lists = not first.startswith("-") or only_lists
    elif verb == "branch":  # `-v` and `-r` say nothing by themselves: `git branch -v NAME` makes one
        makes = arguments.operands and not arguments.has("--list", "-l", "--contains", "--merged", "--no-merged")
        only_lists = not makes and not any(map(_GIT_BRANCH_CHANGES.match, rest))
    own_files = f"{folder}/.git".removeprefix("./")
    if kind in ("@git_get", "@git_send"):
        operands = arguments.operands
        repository = operands[: 2 if verb == "submodule" else 1]
        address = next((word for word in repository if re.search(r"://|^(?:[\w.-]+@)?[\w.-]+:", word)), "")
        if verb == "clone" and re.match(r"file://|[^:\0]+(/|$)", operands[0] if operands else ""):
            doing.read(operands[0])
        else:
            doing.network(address, kind.removeprefix("@git_"))
        if verb == "clone":
            named = re.split(r"[/:]", "".join(operands[:1]).rstrip("/"))[-1].removesuffix(".git")
            doing.write(operands[1] if len(operands) > 1 else named)
            if arguments.has("-c", "-u"):
                doing.unknown("git with a setting that may start programs")
        elif verb != "ls-remote":
            doing.write(own_files, how="git", operation="edit")
        if verb in ("pull", "submodule"):
            doing.write(folder)
        if "foreach" in operands:
            doing.unknown("git submodule foreach starts a program")
    elif kind == "@git_writes" and not only_lists:
        paths = [word for word in rest if not word.startswith("-")]
        doing.write(own_files, how="git", operation="edit")
        if (verb == "config" and not _GIT_PLAIN_SETTING.match("".join(paths[:1]))) or (verb, *paths[:1]) == (
            "bisect",
            "run",
        ):
            doing.unknown("git with a setting or command that may start programs")
        if verb == "config" and arguments.has("--global", "--system", "-f", "--file"):
            doing.write("~/.gitconfig", *arguments.value("-f", "--file"))
        if verb in ("init", "worktree"):
            doing.write(*(path for path in paths if path.startswith(("/", "~", "..")) or HOLE in path))
        if verb in ("clean", "rm"):
            doing.delete(*(paths or [folder] * (verb == "clean")), tree=True)
        elif verb in listed("programs.txt", "@git_files") or (verb == "reset" and {"--hard", "--merge"} & set(rest)):
            doing.write(folder)
    elif not kind:
        doing.program(f"git {verb}", known=False)


# -- the network and databases ------------------------------------------------------------------------------------

_REMOTE = re.compile(r"rsync://|(?:[\w.-]+@)?[\w.-]+:(?!//)(?!\\)")
_ONLY_ASKS = re.compile(r"(list|ls|describe)(-[a-z-]+)?|get|show|status|view|version|help|whoami|search|logs")


@handler
def curl(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    method = "".join(arguments.value("-X", "--request")).upper() or "GET"
    sends = arguments.has(*listed("programs.txt", "@curl_sends")) or method not in ("GET", "HEAD")
    for address in arguments.operands + arguments.value("--url") or [""]:
        doing.network(address, "send" if sends else "get")
        if arguments.has("-O", "--remote-name", "-J", "--remote-name-all"):
            named = address.rstrip("/").rsplit("/", 1)[-1].partition("?")[0]
            doing.write("/".join([*arguments.value("--output-dir")[-1:], named]))
    for data in arguments.value("-d", "--data", "--data-ascii", "--data-binary", "-F", "--form", "--json"):
        if "@" in data[:1] or "=@" in data:
            doing.read(data.partition("@")[2].partition(";")[0])


@handler
def wget(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    sends = arguments.has("--post-data", "--post-file", "--method", "--body-data", "--body-file")
    named = arguments.value("-O", "--output-document")
    folder = next(iter(arguments.value("-P", "--directory-prefix")), ".")
    for address in arguments.operands or [""]:
        doing.network(address, "send" if sends else "get")
        if not named and not arguments.has("--spider"):
            doing.write(f"{folder}/{address.rstrip('/').rsplit('/', 1)[-1].partition('?')[0]}".removeprefix("./"))
    doing.write(*named, *arguments.value("-o", "--output-file", "-a", "--append-output"))


@handler
def httpie(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    operands = call.plain
    method = operands.pop(0) if operands and re.fullmatch(r"[A-Z]+", operands[0]) else ""
    sends = method not in ("", "GET", "HEAD") or any("=" in word for word in operands[1:])
    doing.network("".join(operands[:1]), "send" if sends else "get")


@handler
def connection(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    if call.program != "openssl" or call.arguments[:1] == ["s_client"]:
        addresses = arguments.operands[call.program == "openssl" :] + arguments.value("-connect")
        doing.network(next(iter(addresses), ""), "send")
    elif call.arguments != ["version"]:
        doing.unknown("openssl, which may read and write files")


@handler
def remote_copy(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    *sources, target = arguments.operands or [""]
    for path in sources:
        if _REMOTE.match(path):
            doing.network(path, "get")
        else:
            doing.read(path)
    if _REMOTE.match(target):
        doing.network(target, "send")
    else:
        doing.write(target)
        for path in sources:
            doing.location.copy(f"{path}*" if path.endswith("/") else path, f"{target}/")
        if arguments.has("--delete", *(f"--delete-{when}" for when in ("before", "during", "after", "excluded"))):
            doing.delete(f"{target.rstrip('/')}/*", tree=True)
    if arguments.has("--remove-source-files"):
        doing.delete(*sources, tree=True)


@handler
def service(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    at = 0 if call.program in ("kubectl", "helm") else 1
    doing.network("", "get" if any(map(_ONLY_ASKS.fullmatch, arguments.operands[at : at + 1])) else "send")


@handler
def database(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    addresses = [word for word in arguments.operands if "://" in word]
    doing.network(next(iter([*arguments.value("-h", "--host"), *addresses]), "localhost"), "send")
    codes = arguments.value("-c", "--command", "-e", "--execute", "--eval") + ([call.stdin] if call.stdin else [])
    dialects = DIALECTS.get(call.program)
    changes = [dialects is None or note_sql(code, doing, dialects) for code in codes]
    if not codes or any(changes):
        doing.note("database", call.words[0], how="server")


@handler
def database_file(call: CommandCall, arguments: Arguments, doing: StepEffects, notes: Notes) -> None:
    files, codes = arguments.operands[:1], arguments.operands[1:] + ([call.stdin] if call.stdin else [])
    codes += arguments.value("-c", "-s")
    if not codes and not arguments.has("-version", "--version"):
        doing.unknown(f"{call.program} runs what it reads")  # also commands such as `.shell`
    changes = [note_sql(code, doing, DIALECTS.get(call.program.removesuffix("3"), ANY)) for code in codes]
    only_reads = arguments.has("-readonly", "--readonly", "-version", "--version")
    note_database_file("".join(files), not only_reads and (not codes or any(changes)), doing)
