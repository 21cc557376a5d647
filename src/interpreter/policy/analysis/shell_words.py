"""Words of a shell command from the syntax tree, with holes where only the run will tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, product
from typing import TYPE_CHECKING

from interpreter.policy.analysis.places import HOLE

if TYPE_CHECKING:
    from tree_sitter import Node

_MOST_BRACES = 64
_SHOWN = 500
_BRACES = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


class Words:
    """Turns nodes into words, with the variables whose values are known."""

    def __init__(self, code: str, variables: dict[str, str]) -> None:
        self.code, self.variables = code, variables

    def expanded(self, node: Node) -> list[str]:
        """The words that a node becomes: `{a,b}` is two."""
        word = self.word(node)
        if node.type in ("simple_expansion", "expansion"):
            return word.split() or [word]  # what is not quoted is split
        return list(braced(word)) if node.type in ("word", "concatenation") and "{" in word else [word]

    def word(self, node: Node) -> str:
        """The node's text without quotes and escapes."""
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
                return self._expansion(self.text(node)[2:-1])
            case "brace_expression" | "string_content":
                return self.text(node)
            case "process_substitution":
                return "/dev/fd/63"  # what the shell puts there is a pipe, no file
            case "$":
                return "$"
        return HOLE

    def text(self, node: Node) -> str:
        return self.code[node.start_byte : node.end_byte]

    def beginning(self, node: Node) -> str:
        """As much of the text as is shown: a part can have all the others inside."""
        return self.code[node.start_byte : min(node.end_byte, node.start_byte + _SHOWN)]

    def _expansion(self, inner: str) -> str:
        """`${x}`, and `${x%.txt}`, which stays in the folder where x is."""
        found = re.fullmatch(r"(\w+)%%?[^/]*", inner)
        if found is None:
            return self.variables.get(inner, HOLE)
        value = self.variables.get(found[1], HOLE)
        return HOLE if HOLE in value else value[: value.rfind("/") + 1] + "*"

    def _pieces(self, node: Node) -> str:
        """A string with double quotes; the parser leaves out blanks between its parts."""
        inner = [child for child in node.children if child.type not in ('"', '$"')]
        at, pieces = node.start_byte + (1 if node.type == "string" else 2), []
        for child in inner:
            pieces.append(self.code[at : child.start_byte])
            quoted = child.type == "string_content"
            pieces.append(re.sub(r'\\([\\"$`])', r"\1", self.text(child)) if quoted else self.word(child))
            at = child.end_byte
        pieces.append(self.code[at : max(at, node.end_byte - 1)])
        return "".join(pieces)


def braced(word: str) -> Iterator[str]:
    """`a{b,c}` as `ab` and `ac`."""
    parts = _BRACES.split(word)
    choices = [part.split(",") if at % 2 else [part] for at, part in enumerate(parts)]
    yield from map("".join, islice(product(*choices), _MOST_BRACES))


def _unescaped(found: re.Match[str]) -> str:
    """A character of `$'...'`."""
    for digits, base in ((found[1] or found[2], 16), (found[3], 8)):
        if digits:
            return chr(int(digits, base)) if int(digits, base) else HOLE
    return _ANSI.get(found[4], HOLE)
