"""What a JavaScript block would do: the calls that its text names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from interpreter.policy.analysis.effects import Effect
from interpreter.policy.analysis.notes import HOLE, Doing, Notes, analyze_embedded, note_computer_call, sql_changes
from interpreter.policy.analysis.programs import Call, analyze_command
from interpreter.policy.analysis.tables import javascript_calls, listed

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`",
    re.DOTALL,
)
_STRING = r"(?P<{0}>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)"
_FIRST = r"\s*\(\s*(?:" + _STRING.format("first") + r"(?=\s*[,)]))?"
_SECOND = r"(?:\s*,\s*(?:" + _STRING.format("second") + r"|(?P<list>\[[^\]]*\])))?"
_NAME = r"(?<![\w$])(?P<owner>(?:[\w$]+|[)\]}}/])?\s*\.\s*)?(?P<name>{0})"
_HTTP = re.compile(r"\b(?P<owner>https?|axios|got|superagent|ky)\s*\.\s*(?P<name>\w+)" + _FIRST)
_KILL = re.compile(r"\bprocess\s*\.\s*(kill|abort)\s*\(")
_MODULE = re.compile(
    r"\b(?:require|import)\s*\(\s*(?P<call>[^)\n]*)\)|\bfrom\s*(?P<from>[\"'][^\"'\n]+[\"'])|\bimport\s*(?P<bare>[\"'][^\"'\n]+[\"'])"
)
_TRICKS = re.compile(
    r"\b(?:globalThis|process|global|require|fs|child_process)\s*\[|\b(?:Deno|Bun)\s*\.|\.constructor\s*\("
)
_COMPUTER = re.compile(r"(?<![\w$.])(?P<called>computer\s*(?:\.\s*[A-Za-z]\w*\s*)+)(?=\()")
_LONGEST = 100_000


def analyze(code: str, notes: Notes, known: Mapping[str, tuple[Effect, ...]]) -> dict[str, tuple[Effect, ...]]:
    """Write down what a block would do."""
    notes.step("javascript", "the code itself", 1)
    analyze_part(code, 1, notes)
    return {}


def analyze_part(code: str, line: int, notes: Notes) -> None:
    """Write down what the code would do, as far as it names it."""
    if len(code) > _LONGEST:
        return notes.not_known("javascript", "a very long program", line, "unparsed")
    text = _TOKEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]) if found[0].startswith("/") else found[0], code)
    lines = _Lines(text, line)
    for found in _calls().finditer(text):
        _call(found, lines.of(found.start()), text, notes)
    for found in _HTTP.finditer(text):
        how = "get" if found["name"] in ("get", "head") else "send"
        _step(found, lines.of(found.start()), notes).network(_value(found["first"]), how)
    for found in _KILL.finditer(text):
        _step(found, lines.of(found.start()), notes).note("kill", "a process")
    for found in _TRICKS.finditer(text):
        _step(found, lines.of(found.start()), notes).unknown(f"{found[0].strip()}: a way around names")
    for found in _COMPUTER.finditer(text):
        name = re.sub(r"\s", "", found["called"])
        note_computer_call(notes.step("javascript", name, lines.of(found.start()), [name]), name)
    for name, at in _modules(text):
        notes.step("javascript", f"require {name}", lines.of(at), ["require", name]).unknown(
            f"what the module {name} does"
        )
    return None


class _Lines:
    """Line numbers of places in a text that are asked for one after the other."""

    def __init__(self, text: str, first: int) -> None:
        self.starts = [found.end() for found in re.finditer(r"\n", text)]
        self.first = first

    def of(self, place: int) -> int:
        from bisect import bisect_right

        return self.first + bisect_right(self.starts, place)


@cache
def _calls() -> re.Pattern[str]:
    return re.compile(_NAME.format("|".join(map(re.escape, javascript_calls()))) + _FIRST + _SECOND)


def _call(found: re.Match[str], line: int, text: str, notes: Notes) -> None:
    name = found["name"]
    if name == "exec" and found["owner"] and "child_process" not in text:
        return  # of a regular expression
    if name in ("rm", "rename", "query", "binding") and not found["owner"]:
        return
    doing = _step(found, line, notes)
    values = [_value(found["first"]), _value(found["second"])]
    for does in javascript_calls()[name]:
        value = values[max(does.at, 0)]
        match does.kind:
            case "read":
                doing.read(value)
            case "write":
                doing.write(value)
            case "delete" | "tree":
                doing.delete(value, tree=does.kind == "tree")
            case "get" | "send":
                sends = name == "fetch" and re.search(r"method\s*:\s*['\"`](?!GET|HEAD)", text, re.IGNORECASE)
                doing.network("" if value == HOLE else value, "send" if sends else does.kind)
            case "shell":
                analyze_embedded("shell", value, line, notes)
            case "start":
                _start(name, found, line, doing, notes)
            case "sql":
                if HOLE in value or not value or sql_changes(value):
                    doing.note("database", "a database", known=False, how="server")
            case _:
                doing.unknown(f"{name}: code that is made when it runs")
    if not doing.effects:
        doing.dropped = True


def _start(name: str, found: re.Match[str], line: int, doing: Doing, notes: Notes) -> None:
    first = _value(found["first"])
    if HOLE in first or name == "fork":
        doing.unknown("a program that is chosen when it runs")
        return
    listed = [_value(each[0]) for each in re.finditer(_STRING.format("item"), found["list"] or "")]
    words = [first, *(listed if found["list"] or not found["second"] else [HOLE])]
    if found["list"] is not None and len(listed) < found["list"].count(",") + 1 and found["list"] != "[]":
        words.append(HOLE)
    analyze_command(Call(words, line, " ".join(words).replace(HOLE, "*")), notes)


def _modules(text: str) -> Iterator[tuple[str, int]]:
    for found in _MODULE.finditer(text):
        told = found["call"] or found["from"] or found["bare"] or ""
        name = _value(told.strip() or None)
        if HOLE in name:
            yield "of a name that is made when it runs", found.start()
        elif name.removeprefix("node:") not in listed("javascript.txt", "@module"):
            yield name, found.start()


def _step(found: re.Match[str], line: int, notes: Notes) -> Doing:
    text = " ".join(found[0].split())
    name = "".join((found.groupdict().get("owner") or "").split()) + (found.groupdict().get("name") or text)
    return notes.step("javascript", text, line, [name])


def _value(literal: str | None) -> str:
    """The text of a string literal, with holes; a hole if it is none."""
    if not literal or literal[0] not in "\"'`" or literal[-1] != literal[0]:
        return HOLE
    text = re.sub(r"\$\{[^}]*\}", HOLE, literal[1:-1]) if literal[0] == "`" else literal[1:-1]
    return re.sub(r"\\(.)", r"\1", text)
