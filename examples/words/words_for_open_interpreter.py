"""Awk blocks, a tool, a magic command and a front end. docs/extending.md explains each part."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from interpreter import OpenInterpreter
from interpreter.languages.program import ProgramLanguage
from interpreter.tools import ToolContext


class Awk(ProgramLanguage):
    """Awk programs. Each block runs in a new process, in the folder of the session."""

    name = "Awk"
    aliases = ("gawk", "mawk")
    file_extension = "awk"
    lexer = "awk"
    programs = ("awk",)
    arguments = ("-f", "{file}")
    install = "apt install gawk"


def count_words(
    path: Annotated[str, "a text file in the workspace"], most: int = 5, *, context: ToolContext
) -> dict[str, int]:
    """Count how often each word occurs in a file, and return the most frequent ones."""
    with context.files as folder:
        text = folder.read_bytes(path).decode("utf-8", "replace")
    return dict(Counter(text.lower().split()).most_common(most))


def words(terminal: Any, interpreter: OpenInterpreter, argument: str) -> None:
    """`%words`: show how many words the conversation has."""
    texts = [str(message["content"]) for message in interpreter.messages if message["type"] == "message"]
    terminal.display.line(f"{sum(len(text.split()) for text in texts)} words so far.")


def ask(arguments: list[str]) -> int:
    """`interpreter ask --model NAME`: answer each line of the input with one line, without running code."""
    interpreter = OpenInterpreter(mode="plan")
    if arguments[:1] == ["--model"]:
        interpreter.llm.model = arguments[1]
    while (question := input("? ")) != "":
        for message in interpreter.chat(question, display=False):
            if message["type"] == "message":
                print(" ".join(str(message["content"]).split()))
    return 0
