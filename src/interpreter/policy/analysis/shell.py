"""What a shell block would do: its syntax tree, command by command."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING

from interpreter.config.homes import home
from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import HOLE, Notes, StepEffects
from interpreter.policy.analysis.programs import (
    COMMAND_IN_INDEX,
    INFLUENTIAL,
    CommandCall,
    analyze_command,
    note_changed,
    note_environment,
)

if TYPE_CHECKING:
    from tree_sitter import Language, Node


_MAX_BRACES = 64
_SHOWN_LENGTH = 500
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ASSIGNING = re.compile(r"\$\{(\w+):?=")
_QUOTED_INDEX = re.compile(r"\$\(|`|\w\[\$?$")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)


class Words:
    """Turns nodes into words, with the variables whose values are known."""

    def __init__(self, code: str, variables: dict[str, str]) -> None:
        self.code, self.variables = code, variables

    def expanded(self, node: Node) -> list[str]:
        """Return the words that a node expands to: `{a,b}` is two."""
        word = self.word(node)
        if node.type in ("simple_expansion", "expansion"):
            return word.split() or [word]  # unquoted text is split
        if node.type not in ("word", "concatenation"):
            return [word]
        expansions: list[str] = []
        left = [word]
        while left and len(expansions) < _MAX_BRACES:
            parts = _BRACES.split(left.pop(0))
            choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
            (expansions if len(parts) == 1 else left).extend(map("".join, islice(product(*choices), _MAX_BRACES + 1)))
        return expansions + [HOLE] * bool(left)  # too many to look at

    def word(self, node: Node) -> str:
        """Return the node's text without quotes and escapes."""
        match node.type:
            case "word" | "number" | "variable_name" | "test_operator" | "regex" | "extglob_pattern":
                return re.sub(r"\\(.)", r"\1", self.text(node), flags=re.DOTALL)
            case "string" | "translated_string":
                return self._pieces(node)
            case "raw_string":
                return self.text(node)[1:-1]
            case "ansi_c_string":
                return _ESCAPE.sub(_unescaped, self.text(node)[2:-1])
            case "concatenation" | "command_name":
                return "".join(map(self.word, node.children))
            case "simple_expansion":
                return self.variables.get(self.text(node)[1:], HOLE)
            case "expansion":
                # `${x}`, and `${x%.txt}`, which stays in the folder where x is
                expansion = re.fullmatch(r"(\w+)%%?[^/]*", self.text(node)[2:-1])
                value = self.variables.get(expansion[1] if expansion else self.text(node)[2:-1], HOLE)
                return value if HOLE in value or not expansion else value[: value.rfind("/") + 1] + "*"
            case "brace_expression" | "string_content" | "$":
                return self.text(node)
            case "process_substitution":
                return "/dev/fd/63"  # the shell substitutes a pipe, not a file
        return HOLE

    def text(self, node: Node) -> str:
        return self.code[node.start_byte : node.end_byte]

    def beginning(self, node: Node) -> str:
        """Return the beginning of the node's text, as much as is shown: a node can contain all the others."""
        return self.code[node.start_byte : min(node.end_byte, node.start_byte + _SHOWN_LENGTH)]

    def _pieces(self, node: Node) -> str:
        """Return the text of a string in double quotes; the parser leaves out blanks between its parts."""
        inner = [child for child in node.children if child.type not in ('"', '$"')]
        at, pieces = node.start_byte + (1 if node.type == "string" else 2), []
        for child in inner:
            pieces.append(self.code[at : child.start_byte])
            quoted = child.type == "string_content"
            pieces.append(re.sub(r'\\([\\"$`])', r"\1", self.text(child)) if quoted else self.word(child))
            at = child.end_byte
        pieces.append(self.code[at : max(at, node.end_byte - 1)])
        return "".join(pieces)


def _unescaped(escape: re.Match[str]) -> str:
    """Decode an escape in `$'...'`."""
    for digits, base in ((escape[1] or escape[2], 16), (escape[3], 8)):
        if digits:
            return chr(int(digits, base)) if int(digits, base) else HOLE
    return {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}.get(escape[4], HOLE)


def last_command(node: Node | None) -> Node | None:
    """Find the command that a redirection after a list or a pipeline belongs to."""
    while node is not None and node.type != "command":
        if node.type not in ("list", "pipeline", "negated_command", "redirected_statement"):
            return None
        body = node.child_by_field_name("body")
        node = body if body is not None else next((part for part in reversed(node.children) if part.is_named), None)
    return node


# These parts may run any number of times, or not at all.
_PERHAPS = frozenset(
    {
        "if_statement",
        "while_statement",
        "for_statement",
        "c_style_for_statement",
        "case_statement",
        "function_definition",
    }
)
_FILLING = (b"read", b"mapfile", b"readarray", b"printf", b"getopts", b"eval", b"local")
_MAX_LENGTH = 100_000
_MAX_BOMB_LENGTH = 300
_MAX_DEPTH = 200
_MAX_PIPES = 2000


def analyze(
    code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]], line: int = 1
) -> dict[str, tuple[Effect, ...]]:
    """Record what the code would do; return the functions that it defines, which later blocks may call.

    `line` is that of its first line in the block. `known` are functions of earlier blocks.
    """
    many = code.count("|") + code.count("<<") > _MAX_PIPES  # the parser takes very long over thousands of them
    if notes.too_deep or many or len(code) > _MAX_LENGTH or _depth(code) > _MAX_DEPTH:
        notes.not_known("shell", "very long or deeply nested code", line, "unparsed")
        return {}
    bash = _bash()
    if bash is None:
        notes.not_known("shell", "no parser for the shell is installed (tree-sitter-bash)", line, "unparsed")
        return {}
    from tree_sitter import Parser

    notes.depth += 1
    code = code.replace("\r\n", "\n")
    # A new parser each time: threads must not share it.
    # One byte per character: the grammar's scanner crashes on some that aren't ASCII, and offsets stay the same.
    root = Parser(bash).parse(re.sub(r"[^\x00-\x7f]", "x", code).encode("ascii")).root_node
    shell = ShellAnalysis(code, line, notes, known)
    shell.walk(root)
    notes.depth -= 1
    return {name: (Effect("unknown", f"what the function {name} does", 1, known=False),) for name in shell.functions}


def _depth(code: str) -> int:
    """Return how deeply the brackets are nested; the parser takes very long over thousands of levels."""
    depth = deepest = 0
    for bracket in re.findall(r"[({})]", code):
        depth = depth + 1 if bracket in "({" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


@cache
def _bash() -> Language | None:
    try:
        import tree_sitter_bash
        from tree_sitter import Language
    except ImportError:
        return None
    return Language(tree_sitter_bash.language())


class ShellAnalysis:
    """Walks over the tree of one piece of shell code."""

    def __init__(self, code: str, line: int, notes: Notes, known: Mapping[str, tuple[Effect, ...]]) -> None:
        self.notes, self.line, self.known = notes, line, known
        self.variables = {"HOME": home(), "PWD": notes.location.cwd or HOLE}
        self.words = Words(code, self.variables)
        self.functions: set[str] = set()
        self.settled: dict[str, bool] = {}  # the variables that the code sets, and whether it does so once and for sure
        self.prefixes: set[int] = set()
        self.more: dict[int, list[Node]] = {}  # arguments after a redirection, by the id of their command
        self.stdin: dict[int, str] = {}
        self.piped: dict[int, str] = {}  # the probable input through a pipe, by the id of the command that reads it

    def walk(self, root: Node) -> None:
        if root.has_error:
            errors = (int(node.start_point[0]) for node in _all(root) if node.is_error or node.is_missing)
            self.notes.not_known("shell", "shell code that cannot be parsed", self.line + next(errors, 0), "unparsed")
        self._prepare(root)
        left: list[Node | Callable[[], None]] = [root]
        while left:
            item = left.pop()
            if callable(item):
                item()
            else:
                left += filter(None, [self._after(item)])
                left += reversed(item.children)
                self._see(item)

    def _see(self, node: Node) -> None:
        match node.type:
            case "command":
                self._command(node)
            case "file_redirect":
                self._redirect(node)
            case "variable_assignment":
                self._assignment(node)
            case "for_statement":
                self._loop(node)
            case "function_definition":
                self._function(node)
            case "pipeline":
                for before, after in pairwise(last_command(part) for part in node.children if part.is_named):
                    if before is not None and after is not None:
                        self.piped[after.id] = self._printed(before)
            case "expansion" if (assignment := _ASSIGNING.match(self.words.text(node))) and INFLUENTIAL.fullmatch(
                assignment[1]
            ):
                self.notes.not_known("shell", f"{assignment[1]} is changed", self._line(node))
            case "expansion" if self.words.text(node).endswith("@P}"):
                self.notes.not_known("shell", "text that is expanded as a prompt", self._line(node))
            case "declaration_command":
                call = CommandCall(self._plain(node), self._line(node), self.words.beginning(node))
                analyze_command(call, self.notes)
            case "unset_command" | "test_command":
                doing = self.notes.step("shell", self.words.beginning(node), self._line(node), self._plain(node))
                text = self.words.text(node)
                if COMMAND_IN_INDEX.search(text) or re.search(r"(?<![\w{#!])\w+\[[^\]]*\$", text):
                    doing.unknown("a command in an index")

    def _after(self, node: Node) -> Callable[[], None] | None:
        """Return a function that, after this part, restores the folder and the variables or marks them as unknown."""
        # A change of the working directory ends with such a part.
        if node.type not in _PERHAPS and node.type not in {"subshell", "command_substitution", "process_substitution"}:
            return None
        before, variables = self.notes.location.cwd, dict(self.variables)

        def leave() -> None:
            moved = self.notes.location.cwd != before and node.type in _PERHAPS
            self.notes.location.cwd = None if moved else before
            changed = [name for name, value in self.variables.items() if variables.get(name) != value]
            self.variables.update(dict.fromkeys(changed, HOLE))
            self.variables["PWD"] = self.notes.location.cwd or HOLE

        return leave

    def _command(self, node: Node) -> None:
        arguments = [*node.children_by_field_name("argument"), *self.more.get(node.id, ())]
        name = node.child_by_field_name("name")
        heads = [name.children[0]] if name is not None and name.children else []
        command = [word for part in [*heads, *arguments] for word in self.words.expanded(part)]
        line = self._line(node)
        for child in node.children:
            is_separator = command[:1] == ["read"] and self.words.text(child).startswith("IFS=")
            if child.type == "variable_assignment" and not is_separator:
                self._environment(child, line, note_environment if command else note_changed)
        text = " ".join([self.words.beginning(node), *map(self.words.text, self.more.get(node.id, ()))])
        call = CommandCall(command, line, text, self.stdin.get(node.id), self.functions, self.piped.get(node.id, ""))
        if command and command[0] in self.known and command[0] not in self.functions:
            self.notes.not_known("shell", f"what {command[0]} does, which another block defined", line)
        analyze_command(call, self.notes)
        self.variables["PWD"] = self.notes.location.cwd or HOLE

    def _redirect(self, node: Node) -> None:
        target = node.child_by_field_name("destination")
        operator = next((child.type for child in node.children if not child.is_named), "")
        if target is None or target.type == "number" or self.words.text(target) == "-":
            return
        path = self.words.word(target)
        doing = self.notes.step("shell", f"{operator} {self.words.text(target)}", self._line(node), [operator, path])
        if re.match(r"/dev/(tcp|udp)/", path):
            doing.network(path.split("/")[3], "send")
        if operator in {">", ">>", "&>", "&>>", ">|", ">&", "<>"}:
            doing.write(path, operation="edit" if operator in (">>", "&>>", "<>") else "")
        else:
            doing.read(path)

    def _assignment(self, node: Node) -> None:
        if node.id in self.prefixes:
            return
        self._environment(node, self._line(node), note_changed)
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        quoted = value is not None and value.type in ("raw_string", "ansi_c_string")
        if value is not None and quoted and _QUOTED_INDEX.search(self.words.word(value)):
            self.notes.not_known("shell", "text that may run as a command in an array index", self._line(node))
        if name is not None and self.settled.get(self.words.text(name)):
            self.variables[self.words.text(name)] = self.words.word(value) if value is not None else ""

    def _environment(self, node: Node, line: int, note: Callable[[str, StepEffects], None]) -> None:
        """Record that a variable is set, with `note`; some variables change what later commands do."""
        text = self.words.beginning(node)
        name = re.split(r"[\[+=]", text, maxsplit=1)[0]
        doing = self.notes.step("shell", text, line, [f"{name}="])
        note(name, doing)
        if COMMAND_IN_INDEX.search(self.words.text(node)):
            doing.unknown("a command in an index")

    def _loop(self, node: Node) -> None:
        """Set the variable of `for f in *.txt`, if one word describes all its values."""
        name, values = node.child_by_field_name("variable"), node.children_by_field_name("value")
        choices = [word for value in values for word in self.words.expanded(value)]
        if name is not None and INFLUENTIAL.fullmatch(self.words.text(name)):
            self.notes.not_known("shell", f"{self.words.text(name)} is changed in a loop", self._line(node))
        if name is not None and self.settled.get(self.words.text(name)):
            # Of several plain names, it may be any.
            plain = all(re.fullmatch(r"[\w.*?-]+", word) and not word.startswith(("-", "..")) for word in choices)
            many = "*" if choices and plain else HOLE
            self.variables[self.words.text(name)] = choices[0] if len(choices) == 1 else many

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        word = self.words.word(name)
        self.functions.add(word)
        begins = self.words.beginning(body)[:_MAX_BOMB_LENGTH]
        itself = rf"(?<![\w./-]){re.escape(word)}"
        if re.search(rf"{itself}\s*\|\s*{itself}(?![\w./=-])|{itself}\s*&(?![&>])", begins):
            doing = self.notes.step("shell", self.words.beginning(node), self._line(node), ["fork-bomb"])
            doing.note("kill", "this machine: a function that starts itself again and again")

    def _prepare(self, root: Node) -> None:
        """Find the variables that are set once, and what belongs to a command but is elsewhere in the tree."""
        for node in _all(root):
            match node.type:
                case "variable_assignment" if node.id not in self.prefixes:
                    self._settle(node.child_by_field_name("name"), b"+=" not in (node.text or b""))
                case "for_statement":
                    self._settle(node.child_by_field_name("variable"), once=True)
                case "unset_command":
                    for part in node.children[1:]:
                        self._settle(part, once=False)
                case "redirected_statement" | "command":
                    self._redirections(node)
                    # Variables before a command are its own; those that `read` and the like set are unknown.
                    self.prefixes |= {part.id for part in node.children if part.type == "variable_assignment"}
                    name = node.child_by_field_name("name")
                    for part in node.children[1:] if name is not None and name.text in _FILLING else ():
                        self._settle(part, once=False)

    def _settle(self, name: Node | None, once: bool) -> None:
        if name is not None:
            key = self.words.text(name)
            self.settled[key] = once and key not in self.settled

    def _redirections(self, node: Node) -> None:
        owner = node if node.type == "command" else last_command(node.child_by_field_name("body"))
        if owner is None:
            return
        for redirect in node.children_by_field_name("redirect"):
            match redirect.type:
                case "file_redirect":
                    self.more.setdefault(owner.id, []).extend(redirect.children_by_field_name("destination")[1:])
                case "heredoc_redirect":
                    self.more.setdefault(owner.id, []).extend(redirect.children_by_field_name("argument"))
                    body = next((part for part in redirect.children if part.type == "heredoc_body"), None)
                    self.stdin[owner.id] = self.words.text(body) if body else ""
                    for (
                        part
                    ) in redirect.children:  # `cat <<END | bash`: the tree has the rest of the pipe in the redirection
                        reader = next((each for each in part.children if each.type == "command"), None)
                        if part.type == "pipeline" and reader is not None:
                            self.piped[reader.id] = self._printed(owner)
                case "herestring_redirect":
                    self.stdin[owner.id] = self.words.word(redirect.children[-1])

    def _printed(self, command: Node) -> str:
        """Return what a command prints into a pipe: `echo TEXT | bash`; empty if unknown."""
        name = command.child_by_field_name("name")
        program = self.words.text(name) if name is not None else ""
        if program == "cat":
            return self.stdin.get(command.id, "")
        arguments = map(
            self.words.word, command.children_by_field_name("argument") if program in ("echo", "printf") else ()
        )
        return " ".join(word for word in arguments if not re.fullmatch(r"-[neE]+", word))

    def _plain(self, node: Node) -> list[str]:
        return [self.words.beginning(part) for part in node.children]

    def _line(self, node: Node) -> int:
        return self.line + int(node.start_point[0])


def _all(root: Node) -> Iterator[Node]:
    left = [root]
    while left:
        node = left.pop()
        yield node
        left += reversed(node.children)
