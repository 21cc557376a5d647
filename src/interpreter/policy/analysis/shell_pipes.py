"""What one command of a shell block prints for the next one to read, where the text tells."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from interpreter.policy.analysis.shell_words import Words

if TYPE_CHECKING:
    from tree_sitter import Node

_PRINTING = ("echo", "printf", "cat")
_LISTS = ("list", "pipeline", "negated_command", "redirected_statement")


class Pipes:
    """What seems to come through a pipe, by the id of the command that it goes to."""

    def __init__(self, words: Words, stdin: dict[int, str]) -> None:
        self._words, self._stdin = words, stdin
        self._through: dict[int, str] = {}

    def to(self, command: Node) -> str:
        return self._through.get(command.id, "")

    def see(self, pipeline: Node) -> None:
        """`echo TEXT | bash`."""
        commands = [last_command(part) for part in pipeline.children if part.is_named]
        for before, after in pairwise(commands):
            if before is not None and after is not None:
                self._through[after.id] = self._printed(before)

    def go_on(self, owner: Node, redirect: Node) -> None:
        """`cat <<END | bash`: the rest of the pipe stands in the redirection."""
        for part in redirect.children:
            reader = next((each for each in part.children if each.type == "command"), None)
            if part.type == "pipeline" and reader is not None:
                self._through[reader.id] = self._printed(owner)

    def _printed(self, command: Node) -> str:
        name = command.child_by_field_name("name")
        if name is None or self._words.text(name) not in _PRINTING:
            return ""
        if self._words.text(name) == "cat":
            return self._stdin.get(command.id, "")
        words = map(self._words.word, command.children_by_field_name("argument"))
        return " ".join(word for word in words if not re.fullmatch(r"-[neE]+", word))


def last_command(node: Node | None) -> Node | None:
    """The command that a redirection after a list or a pipeline belongs to."""
    while node is not None and node.type != "command":
        if node.type not in _LISTS:
            return None
        body = node.child_by_field_name("body")
        node = body if body is not None else next((part for part in reversed(node.children) if part.is_named), None)
    return node
