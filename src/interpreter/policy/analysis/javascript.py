"""What a JavaScript block would do, from its tokens. A call or a name that no table lists may do anything."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import HOLE, Doing, Notes, analyze_embedded, note_computer_call, sql_changes
from interpreter.policy.analysis.programs import Call, analyze_command
from interpreter.policy.analysis.tables import javascript_calls, listed

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
_LONGEST = 100_000
_LONGEST_ARGUMENT = 100


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
    """Write down what the code would do; `line` is that of its first line in the block."""
    if not notes.steps:
        notes.step("javascript", "the code itself", 1)
    if len(code) > _LONGEST:
        notes.not_known("javascript", "a very long program", line, "unparsed")
        return {}
    streams: list[list[Token]] = []
    try:
        _tokenize(code, 0, streams)
    except ValueError as error:
        notes.not_known("javascript", str(error), line, "unparsed")
    ends = [found.end() for found in _LINE_END.finditer(code)]
    # Lines are counted as everywhere else, by \n; those that only JavaScript sees belong to the line before.
    starts = [end for end in ends if code[end - 1] == "\n"]
    everything = [token for stream in streams for token in stream]
    walk = _Walk(everything, notes, [line, *starts])
    for stream in streams:
        walk.walk(stream)
    return {}


def _tokenize(code: str, at: int, streams: list[list[Token]], inside: bool = False) -> int:
    """Cut the code into tokens; what stands in a template's `${}` is a stream of its own. Returns where it ended."""
    tokens: list[Token] = []
    streams.append(tokens)
    depth, begins_line = 0, False
    brackets: list[bool] = []  # those that are open, and whether each is the head of a statement: `if (`
    is_head = False
    while at < len(code):
        before = tokens[-1] if tokens else _NONE
        found = _TOKEN.match(code, at)
        assert found is not None  # the last alternative takes any character
        if found["mark"] == "`":
            text, end = "", at + 1
            while True:
                piece = _TEMPLATE.match(code, end)
                assert piece is not None
                text, end = text + piece[0], piece.end()
                if not code.startswith("${", end):
                    break
                text, end = text + HOLE, _tokenize(code, end + 2, streams, inside=True)
            if end >= len(code):
                raise ValueError("a template that does not end")
            tokens.append(Token("template", _unescaped(text), at))
            at = end + 1
            continue
        if found["mark"] == "/":
            literal = _REGEX.match(code, at)
            is_doubled = before.text in ("+", "-") and len(tokens) > 1 and tokens[-2].text == before.text  # `i++ / 2`
            is_operator = before.kind == "mark" and before.text not in ")]}" and not is_doubled
            is_keyword = before.text in listed("javascript.txt", "@before_regex") and (
                len(tokens) < 2 or tokens[-2].text != "."
            )
            if literal and (not before.text or is_operator or is_keyword or (before.text == ")" and is_head)):
                tokens.append(Token("regex", literal[0], at))
                at = literal.end()
                continue
            if literal and before.text == "}" and re.search(r"[\"'`]|/[/*]", code[at + 1 : literal.end() + 1]):
                raise ValueError("a slash that may be a division or begin a regular expression")
        if found["mark"] == "(":
            brackets.append(before.text in ("if", "while", "for", "with"))
        elif found["mark"] == ")" and brackets:
            is_head = brackets.pop()
        if inside and found["mark"] in ("{", "}"):
            depth += 1 if found["mark"] == "{" else -1
            if depth < 0:
                return found.end()
        if found["string"]:
            tokens.append(Token("string", _unescaped(found["string"][1:-1]), at))
        elif found["name"] or found["mark"]:
            tokens.append(Token("name" if found["name"] else "mark", found[0], at, begins_line))
            if found[0] in ('"', "'") or "\\" in found[0]:
                raise ValueError("a text that does not end, or a name with an escape")
        begins_line = bool(found["skip"] and _LINE_END.search(found["skip"]))
        at = found.end()
    return at


def _unescaped(text: str) -> str:
    return HOLE if re.search(r"\\[xu0-7]", text) else re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


class _Walk:
    """A walk over the streams of tokens, one after the other."""

    def __init__(self, everything: list[Token], notes: Notes, lines: list[int]) -> None:
        self.notes, self.lines = notes, lines
        self.has_programs = any("child_process" in token.text for token in everything if token.kind in _TEXTS)
        self.posts = any(
            token.text == "method" and value.text.upper() not in ("GET", "HEAD")
            for token, value in zip(everything, everything[2:], strict=False)
        )
        self.declared = _declared(everything)
        """Names that the code itself gives a meaning."""
        self.modules = _modules(everything)

    def walk(self, tokens: list[Token]) -> None:
        self.tokens, self.pairs = [*tokens, _NONE, _NONE, _NONE], _pairs(tokens)
        self.braces = [at for at, token in enumerate(tokens) if token.text == "}" and token.kind == "mark"]
        dangerous = listed("javascript.txt", "@trick").union(javascript_calls())
        for at, token in enumerate(self.tokens[:-3]):
            before, after = self.tokens[at - 1] if at else _NONE, self.tokens[at + 1 : at + 2] or [_NONE]
            if token.kind == "name":
                self._name(at, token, before, after[0])
            elif token.text in ("(", "?.") and before.text == "]" and (token.text == "(" or after[0].text == "("):
                self._unknown(token, "a call of something that is looked up when it runs")
            elif token.text == "(" and before.text == ")" and not self._is_function(self.pairs.get(at - 1, -2) + 1):
                self._unknown(token, "a call of what a call gives")
            elif token.text == "[" and before.text in self.modules | {"process", "require", "module"}:
                self._unknown(token, f"{before.text}[]: a way around names")
            elif token.text == "[" and after[0].kind in _TEXTS and after[0].text in dangerous:
                self._unknown(token, f"{after[0].text}: a way around names")

    def _name(self, at: int, token: Token, before: Token, after: Token) -> None:
        name, is_property = token.text, before.text in (".", "?.")
        called = after.text == "(" or after.kind == "template" or [after.text, self.tokens[at + 2].text] == ["?.", "("]
        if name == "computer" and not is_property and after.text == ".":
            self._computer(at)
        elif name in ("require", "import") and not is_property and (called or name == "import"):
            self._module(at, name, called)
        elif (
            is_property
            and called
            and not listed("javascript.txt", "@client").isdisjoint(
                each.text.removeprefix("node:") for each in self.tokens[max(at - 3, 0) : at - 1]
            )
        ):
            where = _value((self._arguments(at) or [[]])[0])
            doing = self.notes.step("javascript", f"{self.tokens[at - 2].text}.{name}", self._line(token), [name])
            doing.network("" if where == HOLE else where, "get" if name in ("get", "head") else "send")
        elif name == "constructor" and not is_property and self._defines(at):
            return
        elif name in listed("javascript.txt", "@trick") or (is_property and name.startswith("_")):
            self._unknown(token, f"{name}: a way around names")
        elif name in ("process", "module", "require") and not is_property:
            following = self.tokens[at + 2].text if after.text in (".", "?.") else ""
            if following not in listed("javascript.txt", f"@{name}_object"):
                self._unknown(token, f"what {name} does here")
        elif name in self.modules and not is_property and after.text not in (".", "=", "from", "?.", "["):
            self._unknown(token, f"the module {name} is handed on")
        elif name in javascript_calls() and (is_property or name not in self.declared):
            if called and before.text != "function":
                self._call(at, token, before)
            elif not self._in_braces(at) and (is_property or after.text not in ("=", ".")):
                self._unknown(token, f"{name} is handed on")
        elif (
            called
            and name not in listed("javascript.txt", "@keyword") | self.declared
            and before.text not in ("function", "class")
        ):
            harmless = listed("javascript.txt", "@method" if is_property else "@function")
            root = before.text == "." and at > 1 and self.tokens[at - 2].text == "computer"
            if name not in harmless and not root and not self._defines(at):
                self._unknown(token, f"what {name}() does")

    def _is_function(self, at: int) -> bool:
        """Does a function begin there, as in `(() => ...)()`?"""
        if self.tokens[at].text != "(":
            return self.tokens[at].text in _FUNCTIONS
        return self.tokens[self._close(at) + 1].text == "=>"

    def _in_braces(self, at: int) -> bool:
        """`const {readFile} = require("fs")` and `import {readFile} from "fs"`, without another name."""
        place = bisect_right(self.braces, at)
        end = self.braces[place] if place < len(self.braces) else at
        is_first = at > 0 and self.tokens[at - 1].text in ("{", ",")
        return is_first and self.tokens[at + 1].text in (",", "}") and self.tokens[end + 1].text in ("=", "from")

    def _defines(self, at: int) -> bool:
        """Is this `name(parameters) {` on one line, as a class or an object has it?"""
        brace = self.tokens[self._close(at + 1) + 1]
        return brace.text == "{" and not brace.begins_line

    def _close(self, opening: int) -> int:
        return self.pairs.get(opening, len(self.tokens) - 3)

    def _arguments(self, at: int) -> list[list[Token]]:
        """The arguments of the call whose name stands there."""
        found: list[list[Token]] = [[]]
        opening = next((place for place in (at + 1, at + 2) if self.tokens[place].text == "("), -1)
        if opening < 0:
            return []
        place, end = opening + 1, self._close(opening)
        while place < end:
            if self.tokens[place].text == ",":
                found.append([])
                place += 1
                continue
            close = self._close(place) if self.tokens[place].text in ("(", "[", "{") else place
            found[-1] += self.tokens[place : min(close + 1, place + _LONGEST_ARGUMENT)]
            place = close + 1
        return [tokens for tokens in found if tokens]

    def _call(self, at: int, token: Token, before: Token) -> None:
        name, arguments = token.text, self._arguments(at)
        owner = self.tokens[at - 2] if before.text in (".", "?.") and at > 1 else _NONE
        if name == "exec" and not self.has_programs and (owner.kind == "regex" or owner.text in self.declared):
            return
        text = f"{owner.text}.{name}" if owner.kind == "name" else name
        doing = self.notes.step("javascript", text, self._line(token), [text])
        values = [_value(argument) for argument in arguments] + [HOLE, HOLE]
        for does in javascript_calls()[name]:
            value = values[max(does.at, 0)]
            match does.kind:
                case "read" if any(token.text in ("flag", "flags") for given in arguments for token in given):
                    doing.path("write", value)
                case "read" | "write":
                    doing.path("read" if does.kind == "read" else "write", value)
                case "delete" | "tree":
                    doing.delete(value, tree=does.kind == "tree")
                case "get" | "send":
                    doing.network("" if value == HOLE else value, "send" if self.posts else does.kind)
                case "shell":
                    self._options(arguments, doing)
                    analyze_embedded("shell", value, doing.line, self.notes)
                case "start" if HOLE in value or name == "fork":
                    doing.unknown("a program that is chosen when it runs")
                case "start":
                    self._options(arguments, doing)
                    given = arguments[1] if len(arguments) > 1 else []
                    is_list = all(token.kind in _TEXTS or token.text in "[,]" for token in given)
                    more = [token.text for token in given if token.kind in _TEXTS] if is_list else [HOLE]
                    words = [value, *more]
                    analyze_command(Call(words, doing.line, " ".join(words).replace(HOLE, "*")), self.notes)
                case "sql":
                    if HOLE in value or not value or sql_changes(value):
                        doing.note("database", "a database", known=False, how="server")
                case "kill":
                    doing.note("kill", "a process")
                case _:
                    doing.unknown(f"{name}: code that is made when it runs")
        doing.dropped = not doing.effects

    def _options(self, arguments: list[list[Token]], doing: Doing) -> None:
        if any(token.text in ("shell", "env", "...") for argument in arguments[1:] for token in argument):
            doing.unknown("a program with another shell or environment")

    def _module(self, at: int, name: str, called: bool) -> None:
        """`require("x")`, `import("x")` or `import ... from "x"`."""
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
                self._unknown(token, f"the module {module} is handed on".replace(HOLE, "*"))
        elif name == "import" and rest[0].text == ".":
            return
        else:
            module = next((each.text for each in rest if each.kind in _TEXTS), HOLE)
        if module.removeprefix("node:") not in listed("javascript.txt", "@module"):
            shown = "of a name that is made when it runs" if HOLE in module else module
            step = self.notes.step("javascript", f"require {shown}", self._line(token), ["require", shown])
            step.unknown(f"what the module {shown} does")

    def _computer(self, at: int) -> None:
        end = at
        while self.tokens[end + 1].text == "." and self.tokens[end + 2].kind == "name":
            end += 2
        name = "".join(token.text for token in self.tokens[at : end + 1])
        if self.tokens[end + 1].text == "(":
            note_computer_call(self.notes.step("javascript", name, self._line(self.tokens[at]), [name]), name)

    def _unknown(self, token: Token, why: str) -> None:
        self.notes.step("javascript", token.text, self._line(token), [token.text]).unknown(why)

    def _line(self, token: Token) -> int:
        first, *starts = self.lines
        return first + bisect_right(starts, token.at)


def _value(tokens: list[Token]) -> str:
    """The text of an argument that is written out; else a hole."""
    return tokens[0].text if len(tokens) == 1 and tokens[0].kind in _TEXTS else HOLE


def _pairs(tokens: list[Token]) -> dict[int, int]:
    """The place of each bracket's other half."""
    found: dict[int, int] = {}
    left: list[int] = []
    for at, token in enumerate(tokens):
        if token.kind == "mark" and token.text in ("(", "[", "{"):
            left.append(at)
        elif token.kind == "mark" and token.text in (")", "]", "}") and left:
            opening = left.pop()
            found |= {opening: at, at: opening}
    return found


def _declared(tokens: list[Token]) -> frozenset[str]:
    """Names of variables, functions, classes and parameters; not those that are taken out of an object or a module."""
    found: set[str] = set()
    pairs = _pairs(tokens)
    for at, token in enumerate(tokens):
        after = tokens[at + 1].text if at + 1 < len(tokens) else ""
        if (
            token.kind == "name"
            and at
            and (tokens[at - 1].text in listed("javascript.txt", "@declaring") or after == "=>")
        ):
            found.add(token.text)
        elif token.text == ")" and after in ("=>", "{") and not tokens[at + 1].begins_line:
            # Its parameters; before them, the name of a method.
            start = max(pairs.get(at, at) - 1, 0)
            parameters = tokens[start : min(at, start + _LONGEST_ARGUMENT)]
            found |= {each.text for each in parameters if each.kind == "name"} - listed("javascript.txt", "@keyword")
    return frozenset(found) - javascript_calls().keys() | frozenset(
        name.text
        for word, name in pairwise(tokens)
        if word.text in ("const", "let", "var", "function") and name.kind == "name"
    )


def _modules(tokens: list[Token]) -> frozenset[str]:
    """Names that stand for a whole module."""
    found = set()
    for at, token in enumerate(tokens):
        if token.text in ("require", "import") and token.kind == "name":
            back = at - 2 if at > 1 and tokens[at - 1].text == "await" else at - 1
            if back > 0 and tokens[back].text == "=" and tokens[back - 1].kind == "name":
                found.add(tokens[back - 1].text)
            if token.text == "import" and at + 2 < len(tokens):
                found |= {tokens[at + 1].text} if tokens[at + 2].text in ("from", ",") else set()
                found |= {tokens[at + 3].text} if tokens[at + 1].text == "*" and at + 3 < len(tokens) else set()
    return frozenset(found)
