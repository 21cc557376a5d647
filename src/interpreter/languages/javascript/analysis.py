"""What a JavaScript block would do, from its tokens. A call or a name that no table lists may do anything."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import (
    HOLE,
    ON_PATHS,
    Notes,
    StepEffects,
    analyze_embedded,
    note_computer_call,
    note_registered_call,
)
from interpreter.policy.analysis.programs import CommandCall, analyze_command
from interpreter.policy.analysis.sql import note_sql
from interpreter.policy.analysis.tables import calls, listed

_TABLE = str(Path(__file__).with_name("calls.txt"))
# A line ends at U+2028 and U+2029, too: code behind them is not part of a comment.
_END = r"\n\r\u2028\u2029"
_LINE_END = re.compile(f"\r\n|[{_END}]")
_TOKEN = re.compile(
    rf"(?P<skip>[\s\ufeff]+|//[^{_END}]*|/\*.*?\*/)"
    r"|(?P<name>[\w$#\\]+)"
    rf"|(?P<string>\"(?:[^\"\\\n\r]|\\.)*\"|'(?:[^'\\\n\r]|\\.)*')"
    r"|(?P<mark>=>|\?\.|\.\.\.|.)",
    re.DOTALL,
)
_REGEX = re.compile(rf"/(?:[^/\\\[{_END}]|\\.|\[(?:[^\]\\{_END}]|\\.)*\])+/\w*")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*", re.DOTALL)
_FUNCTIONS = ("function", "async", "class")  # in brackets, it is called at once
_MAX_LENGTH = 100_000
_MAX_ARGUMENT_LENGTH = 100
# Among the known functions once a block has looked up a value by a computed name. The value may be the constructor
# `Function`, which turns any text into a function.
_COMPUTED = "javascript[]"
_NAMESPACES = ("Array", "Date", "JSON", "Math", "Number", "Object", "Promise", "String", "console")


class Token(NamedTuple):
    """A name, a string or template (its text, with holes), a regular expression or a mark."""

    kind: str
    text: str
    at: int
    begins_line: bool = False


_NONE = Token("", "", 0)
_TEXTS = ("string", "template")


def analyze(
    code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]], line: int = 1
) -> dict[str, tuple[Effect, ...]]:
    """Record what the code would do; `line` is the number of its first line in the block."""
    if not notes.steps:
        notes.step("javascript", "the code itself", 1)
    if len(code) > _MAX_LENGTH:
        notes.not_known("javascript", "a very long program", line, "unparsed")
        return {}
    streams: list[list[Token]] = []
    try:
        _tokenize(code, 0, streams)
    except ValueError as error:
        notes.not_known("javascript", str(error), line, "unparsed")
    # Lines are counted as everywhere else, by \n; those that only JavaScript sees belong to the line before.
    starts = [at for at, letter in enumerate(code, 1) if letter == "\n"]
    walk = _Walk([token for stream in streams for token in stream], notes, [line, *starts], _COMPUTED in known)
    for stream in streams:
        walk.walk(stream)
    return {_COMPUTED: ()} if walk.has_computed else {}


def _tokenize(code: str, at: int, streams: list[list[Token]], inside: bool = False) -> int:
    """Cut the code into tokens; the content of a template's `${}` is a separate stream. Returns where it ended."""
    tokens: list[Token] = []
    streams.append(tokens)
    depth, begins_line = 0, False
    brackets: list[bool] = []  # open brackets, and whether each belongs to the head of a statement: `if (`
    is_head = False
    while at < len(code):
        before = tokens[-1] if tokens else _NONE
        match = _TOKEN.match(code, at)
        assert match is not None  # the last alternative takes any character
        if match["mark"] == "`":
            text, end = "", at + 1
            while True:
                piece = _TEMPLATE.match(code, end)
                assert piece is not None
                text, end = text + piece[0], piece.end()
                if not code.startswith("${", end):
                    break
                text, end = text + HOLE, _tokenize(code, end + 2, streams, inside=True)
            if end >= len(code):
                raise ValueError("an unterminated template")
            tokens.append(Token("template", _unescaped(text), at))
            at = end + 1
            continue
        if match["mark"] == "/":
            literal = _REGEX.match(code, at)
            is_doubled = before.text in ("+", "-") and len(tokens) > 1 and tokens[-2].text == before.text  # `i++ / 2`
            is_operator = before.kind == "mark" and before.text not in ")]}" and not is_doubled
            is_keyword = before.text in listed(_TABLE, "@before_regex") and (len(tokens) < 2 or tokens[-2].text != ".")
            if literal and (not before.text or is_operator or is_keyword or (before.text == ")" and is_head)):
                tokens.append(Token("regex", literal[0], at))
                at = literal.end()
                continue
            if literal and before.text == "}" and re.search(r"[\"'`]|/[/*]", code[at + 1 : literal.end() + 1]):
                raise ValueError("a slash that could be a division or a regular expression")
        if match["mark"] == "(":
            brackets.append(before.text in ("if", "while", "for", "with"))
        elif match["mark"] == ")" and brackets:
            is_head = brackets.pop()
        if inside and match["mark"] in ("{", "}"):
            depth += 1 if match["mark"] == "{" else -1
            if depth < 0:
                return match.end()
        if match["string"]:
            tokens.append(Token("string", _unescaped(match["string"][1:-1]), at))
        elif match["name"] or match["mark"]:
            tokens.append(Token("name" if match["name"] else "mark", match[0], at, begins_line))
            if match[0] in ('"', "'") or "\\" in match[0]:
                raise ValueError("an unterminated string, or a name with an escape")
        begins_line = bool(match["skip"] and _LINE_END.search(match["skip"]))
        at = match.end()
    return at


def _unescaped(text: str) -> str:
    return HOLE if re.search(r"\\[xu0-7]", text) else re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


class _Walk:
    """Walks over the streams of tokens, one after the other."""

    def __init__(self, everything: list[Token], notes: Notes, lines: list[int], has_computed: bool) -> None:
        self.notes, self.lines = notes, lines
        self.has_programs = any("child_process" in token.text for token in everything if token.kind in _TEXTS)
        self.posts = any(
            token.text == "method" and value.text.upper() not in ("GET", "HEAD")
            for token, value in zip(everything, everything[2:], strict=False)
        )
        # Names that the code itself defines, and those that always stand for one of its functions.
        self.declared, self.functions = _declared(everything)
        self.calls = set[int]()  # places of the last names of calls of tools
        self.modules = _modules(everything)
        self.has_computed = has_computed or _has_computed(everything, self.declared)
        # Names of members that the code assigns.
        self.stored = frozenset(
            name.text
            for before, name, after in zip(everything, everything[1:], everything[2:], strict=False)
            if (before.text == "." and after.text == "=") or (before.text in ("{", ",") and after.text == ":")
        )

    def walk(self, tokens: list[Token]) -> None:
        self.tokens, self.pairs = [*tokens, _NONE, _NONE, _NONE], _pairs(tokens)
        self.braces = [at for at, token in enumerate(tokens) if token.text == "}" and token.kind == "mark"]
        dangerous = listed(_TABLE, "@trick").union(calls(_TABLE))
        for at, token in enumerate(self.tokens[:-3]):
            before, after = self.tokens[at - 1] if at else _NONE, self.tokens[at + 1 : at + 2] or [_NONE]
            if token.kind == "name":
                self._name(at, token, before, after[0])
            elif token.text in ("(", "?.") and before.text == "]" and (token.text == "(" or after[0].text == "("):
                self._unknown(token, "a call to a function that is only known at run time")
            elif token.kind == "template" and before.text in ("]", ")"):
                self._unknown(token, "a template for something looked up at run time")
            elif token.text == "(" and before.text == ")" and not self._holds_function(at - 1):
                self._unknown(token, "a call of a returned function")
            elif token.text == "[" and before.text in self.modules | {"process", "require", "module"}:
                self._unknown(token, f"{before.text}[]: dynamic lookup")
            elif token.text == "[" and after[0].kind in _TEXTS and after[0].text in dangerous:
                self._unknown(token, f"{after[0].text}: dynamic lookup")

    def _name(self, at: int, token: Token, before: Token, after: Token) -> None:
        name, is_property = token.text, before.text in (".", "?.")
        called = after.text == "(" or after.kind == "template" or [after.text, self.tokens[at + 2].text] == ["?.", "("]
        if called and self.has_computed and self._may_call_computed(at, is_property):
            self._unknown(token, f"{name}(): may call something looked up at run time")
        if name in ("computer", "tools") and name not in self.declared and not is_property and after.text == ".":
            self._computer(at)
        elif name in ("require", "import") and not is_property and (called or name == "import"):
            self._module(at, name, called)
        elif (
            is_property
            and called
            and not listed(_TABLE, "@client").isdisjoint(
                each.text.removeprefix("node:") for each in self.tokens[max(at - 3, 0) : at - 1]
            )
        ):
            where = _value((self._arguments(at) or [[]])[0])
            doing = self.notes.step("javascript", f"{self.tokens[at - 2].text}.{name}", self._line(token), [name])
            doing.network("" if where == HOLE else where, "get" if name in ("get", "head") else "send")
        elif name == "constructor" and not is_property and self._defines(at):
            return
        elif name in listed(_TABLE, "@trick") or (is_property and name.startswith("_")):
            self._unknown(token, f"{name}: dynamic lookup")
        elif name in ("process", "module", "require") and not is_property:
            following = self.tokens[at + 2].text if after.text in (".", "?.") else ""
            if following not in listed(_TABLE, f"@{name}_object"):
                self._unknown(token, f"what {name} does here")
        elif name in self.modules and not is_property and after.text not in (".", "=", "from", "?.", "["):
            self._unknown(token, f"the module {name} is passed on")
        elif name in calls(_TABLE) and (is_property or name not in self.declared):
            if called and before.text != "function":
                self._call(at, token, before)
            elif not self._in_braces(at) and (is_property or after.text not in ("=", ".")):
                self._unknown(token, f"{name} is passed on")
        elif (
            called
            and name not in listed(_TABLE, "@keyword") | self.declared
            and before.text not in ("function", "class")
        ):
            harmless = listed(_TABLE, "@method" if is_property else "@function")
            root = before.text == "." and at > 1 and self.tokens[at - 2].text == "computer"
            if name not in harmless and not root and at not in self.calls and not self._defines(at):
                self._unknown(token, f"what {name}() does")

    def _may_call_computed(self, at: int, is_property: bool) -> bool:
        """Return whether this may call a foreign function: by its name, or as a callback in its arguments."""
        name, before = self.tokens[at].text, self.tokens[max(at - 2, 0) : at]
        if self._defines(at) or (before and before[-1].text == "function"):
            return False
        if is_property and name in self.stored and before[0].text not in _NAMESPACES:
            return True
        if not is_property and name in self.declared:
            return name not in self.functions
        arguments = self._arguments(at)
        called = arguments[:1] if name in listed(_TABLE, "@callback") else []
        called += arguments[1:3] if name in listed(_TABLE, "@late_callback") else []
        return not all(map(self._is_own_function, called))

    def _is_own_function(self, argument: list[Token]) -> bool:
        """Return whether the argument is a function of the code or of JavaScript, or no function at all."""
        first, last, pairs = argument[0], argument[-1], _pairs(argument)
        if first is last:
            is_literal = first.kind in (*_TEXTS, "regex") or first.text.isdigit() or first.text in ("null", "undefined")
            return is_literal or first.text in listed(_TABLE, "@function") or first.text in self.functions
        is_listed = first.text in _NAMESPACES and len(argument) == 3 and argument[1].text == "."
        is_data = first.text in ("[", "{") and pairs.get(0) == len(argument) - 1
        is_function = first.text in _FUNCTIONS and last.text == "}"
        return is_listed or is_data or is_function or _is_arrow(argument, 0, pairs)

    def _holds_function(self, close: int) -> bool:
        """Return whether these brackets contain a function and nothing else, as in `(() => ...)()`."""
        held = self._arguments(self.pairs.get(close, 0) - 1)
        return len(held) == 1 and self._is_own_function(held[0])

    def _in_braces(self, at: int) -> bool:
        """Recognize `const {readFile} = require("fs")` and `import {readFile} from "fs"`, without renaming."""
        index = bisect_right(self.braces, at)
        end = self.braces[index] if index < len(self.braces) else at
        is_first = at > 0 and self.tokens[at - 1].text in ("{", ",")
        return is_first and self.tokens[at + 1].text in (",", "}") and self.tokens[end + 1].text in ("=", "from")

    def _defines(self, at: int) -> bool:
        """Recognize `name(parameters) {` on one line, as in a class or an object."""
        brace = self.tokens[self._close(at + 1) + 1]
        return brace.text == "{" and not brace.begins_line

    def _close(self, opening: int) -> int:
        return self.pairs.get(opening, len(self.tokens) - 3)

    def _arguments(self, at: int) -> list[list[Token]]:
        """Split the arguments of the call whose name is at this index; empty if no bracket follows."""
        arguments: list[list[Token]] = [[]]
        opening = next((index for index in (at + 1, at + 2) if self.tokens[index].text == "("), -1)
        if opening < 0:
            return []
        index, end = opening + 1, self._close(opening)
        while index < end:
            if self.tokens[index].text == ",":
                arguments.append([])
                index += 1
                continue
            close = self._close(index) if self.tokens[index].text in ("(", "[", "{") else index
            arguments[-1] += self.tokens[index : min(close + 1, index + _MAX_ARGUMENT_LENGTH)]
            if close >= index + _MAX_ARGUMENT_LENGTH:
                arguments[-1] += [Token("template", HOLE, 0), self.tokens[close]]
            index = close + 1
        return [tokens for tokens in arguments if tokens]

    def _call(self, at: int, token: Token, before: Token) -> None:
        name, arguments = token.text, self._arguments(at)
        owner = self.tokens[at - 2] if before.text in (".", "?.") and at > 1 else _NONE
        if name == "exec" and not self.has_programs and (owner.kind == "regex" or owner.text in self.declared):
            return
        text = f"{owner.text}.{name}" if owner.kind == "name" else name
        doing = self.notes.step("javascript", text, self._line(token), [text])
        values = [_value(argument) for argument in arguments] + [HOLE, HOLE]
        for does in calls(_TABLE)[name]:
            value = values[max(does.at, 0)]
            match does.kind:
                case "read" if any(token.text in ("flag", "flags", HOLE) for given in arguments[1:] for token in given):
                    doing.write(value)
                case word if word in ON_PATHS:
                    doing.on_paths(word, value)
                case "link":
                    doing.link(value, values[0], hard=name.startswith("link"))
                case "copied":
                    doing.location.copy(values[0], value)
                case "get" | "send":
                    doing.network("" if value == HOLE else value, "send" if self.posts else does.kind)
                case "shell":
                    self._options(arguments, doing)
                    analyze_embedded("shell", value, doing.line, self.notes)
                case "start" if HOLE in value or name == "fork":
                    doing.unknown("a program chosen at run time")
                case "start":
                    self._options(arguments, doing)
                    given = arguments[1] if len(arguments) > 1 else []
                    is_list = all(token.kind in _TEXTS or token.text in "[,]" for token in given)
                    command = [value, *([token.text for token in given if token.kind in _TEXTS] if is_list else [HOLE])]
                    analyze_command(CommandCall(command, doing.line, " ".join(command).replace(HOLE, "*")), self.notes)
                case "sql":
                    if HOLE in value[:6] or not value or note_sql(value, doing):
                        doing.note("database", "a database", known=False, how="server")
                case "kill":
                    doing.note("kill", "a process")
                case _:
                    doing.unknown(f"{name}: code built at run time")
        doing.dropped = not doing.effects

    def _options(self, arguments: list[list[Token]], doing: StepEffects) -> None:
        if any(token.text in ("shell", "env", "...", HOLE) for argument in arguments[1:] for token in argument):
            doing.unknown("a program with another shell or environment")

    def _module(self, at: int, name: str, called: bool) -> None:
        """Record `require("x")`, `import("x")` or `import ... from "x"`."""
        token, rest = self.tokens[at], self.tokens[at + 1 :]
        if called and self.tokens[at + 1].text == "(":
            arguments = self._arguments(at)
            module, end = _value(arguments[0]) if arguments else HOLE, self._close(at + 1)
            before = self.tokens[at - 2 if at and self.tokens[at - 1].text == "await" else at - 1] if at else _NONE
            plain = before.text in ("=", "", ";", "}", "(") and self.tokens[end + 1].text not in ("[", "(", ",")
            if before.text == "(":  # `(await import("fs")).x`, but not `f(require("fs"))`
                opening = self.pairs.get(end + 1, 0)
                called = opening > 0 and self.tokens[opening - 1].kind == "name"
                plain = not called and self.tokens[end + 1].text == ")" and self.tokens[end + 2].text == "."
            if not plain and self.tokens[end + 1].text != ".":
                self._unknown(token, f"the module {module} is passed on".replace(HOLE, "*"))
        elif name == "import" and rest[0].text == ".":
            return
        else:
            module = next((each.text for each in rest if each.kind in _TEXTS), HOLE)
        if module.removeprefix("node:") not in listed(_TABLE, "@module"):
            shown = "with a name built at run time" if HOLE in module else module
            step = self.notes.step("javascript", f"require {shown}", self._line(token), ["require", shown])
            step.unknown(f"what the module {shown} does")

    def _computer(self, at: int) -> None:
        end = at
        while self.tokens[end + 1].text == "." and self.tokens[end + 2].kind == "name":
            end += 2
        name = "".join(token.text for token in self.tokens[at : end + 1])
        if self.tokens[end + 1].text == "(":
            note = note_computer_call if name.startswith("computer.") else note_registered_call
            note(self.notes.step("javascript", name, self._line(self.tokens[at]), [name]), name)
            self.calls.add(end)

    def _unknown(self, token: Token, why: str) -> None:
        self.notes.step("javascript", token.text, self._line(token), [token.text]).unknown(why)

    def _line(self, token: Token) -> int:
        first, *starts = self.lines
        return first + bisect_right(starts, token.at)


def _value(tokens: list[Token]) -> str:
    """Return the text of a literal argument, or a hole for anything else."""
    return tokens[0].text if len(tokens) == 1 and tokens[0].kind in _TEXTS else HOLE


def _pairs(tokens: list[Token]) -> dict[int, int]:
    """Map the index of each bracket to the index of its counterpart."""
    pairs: dict[int, int] = {}
    left: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "mark" and token.text in ("(", "[", "{"):
            left.append(at)
        elif token.kind == "mark" and token.text in (")", "]", "}") and left:
            opening = left.pop()
            pairs |= {opening: at, at: opening}
    return pairs


def _declared(tokens: list[Token]) -> tuple[frozenset[str], frozenset[str]]:
    """Names of variables, functions, classes and parameters; and of these, the ones that are functions throughout.

    Names that are taken out of an object or a module do not count.
    """
    declared_names: set[str] = set()
    functions: set[str] = set()
    others: set[str] = set()
    pairs = _pairs(tokens)
    for at, token in enumerate(tokens):
        before, after = tokens[at - 1].text if at else "", tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind == "name":
            if at and (before in listed(_TABLE, "@declaring") or after == "=>"):
                declared_names.add(token.text)
            is_executor = before == "(" and tokens[at - 2].text == "Promise" and after == "=>"
            is_plain = before == "function" or (before == "class" and after != "extends")
            if is_plain or is_executor or (before == "const" and after == "=" and _is_arrow(tokens, at + 2, pairs)):
                functions.add(token.text)
            elif before in ("const", "let", "var") or after in ("=", "=>", "of", "in"):
                others.add(token.text)
        elif token.text in (")", "]", "}") and after in ("=>", "{", "=", "of") and not tokens[at + 1].begins_line:
            # Parameters; before them, the name of a method. Or a pattern that gives names a value.
            start = max(pairs.get(at, at) - 1, 0)
            names = [each.text for each in tokens[start : min(at, start + _MAX_ARGUMENT_LENGTH)] if each.kind == "name"]
            if token.text == ")" and after in ("=>", "{"):
                declared_names |= set(names) - listed(_TABLE, "@keyword")
            if [each.text for each in tokens[max(start - 1, 0) : start + 1]] == ["Promise", "("]:
                functions |= set(names)
            elif tokens[start].text not in ("if", "while", "for", "switch"):
                others |= set(names[1:] if tokens[start].kind == "name" else names)
    declared = frozenset(declared_names) - calls(_TABLE).keys() | frozenset(
        name.text
        for word, name in pairwise(tokens)
        if word.text in ("const", "let", "var", "function") and name.kind == "name"
    )
    return declared, frozenset(functions - others if "Promise" not in declared_names | others else ())


def _is_arrow(tokens: list[Token], at: int, pairs: Mapping[int, int]) -> bool:
    """Return whether an arrow function begins here: `x => ...` or `(x) => ...`, with or without `async`."""
    start = at + (tokens[at].text == "async")
    behind = pairs.get(start, start) + 1
    return behind < len(tokens) and tokens[behind].text == "=>"


def _has_computed(tokens: list[Token], declared: frozenset[str]) -> bool:
    """Return whether the code uses a value that it looks up by a computed name, as in `f = x[key]`."""
    pairs = _pairs(tokens)
    keywords = (listed(_TABLE, "@before_regex") | {"const", "let", "var"}) - declared
    for at, token in enumerate(tokens):
        opening = pairs.get(at, 0)
        if token.text != "]" or not opening:
            continue
        before, key = tokens[opening - 1], tokens[opening + 1]
        after, second = [*(each.text for each in tokens[at + 1 : at + 3]), "", ""][:2]
        if before.text in ("{", ",") and after == ":":  # `const {[key]: f} = x`
            return True
        if before.text in keywords or (before.kind == "mark" and before.text not in (")", "]", "}", "?.")):
            continue  # an array, or a pattern
        is_text = key.kind in _TEXTS and HOLE not in key.text
        is_literal = at == opening + 2 and (is_text or key.text.isdigit())
        head = pairs.get(at + 1, 0) if after == ")" else 0
        is_head = head > 0 and at < head + _MAX_ARGUMENT_LENGTH and tokens[head - 1].text in ("if", "while")
        is_head = is_head and all(each.text != "=" for each in tokens[head:opening])
        is_condition = is_head or (after == "?" and second != "?")
        if not is_literal and not is_condition and after not in listed(_TABLE, "@behind_member"):
            return True
    return False


def _modules(tokens: list[Token]) -> frozenset[str]:
    """Collect the names that stand for a whole module."""
    modules = set()
    for at, token in enumerate(tokens):
        if token.text in ("require", "import") and token.kind == "name":
            back = at - 2 if at > 1 and tokens[at - 1].text == "await" else at - 1
            if back > 0 and tokens[back].text == "=" and tokens[back - 1].kind == "name":
                modules.add(tokens[back - 1].text)
            if token.text == "import" and at + 2 < len(tokens):
                modules |= {tokens[at + 1].text} if tokens[at + 2].text in ("from", ",") else set()
                modules |= {tokens[at + 3].text} if tokens[at + 1].text == "*" and at + 3 < len(tokens) else set()
    return frozenset(modules)
