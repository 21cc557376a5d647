"""A program that uses the package on Windows; run by `test_windows.py`, which simulates Windows on other systems."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections.abc import Iterator

import interpreter
from interpreter import OpenInterpreter
from interpreter.messages import Chunk


class Shout:
    name = "shout"

    def run(self, code: str) -> Iterator[Chunk]:
        yield {"type": "console", "format": "output", "content": code.upper()}


def import_all() -> None:
    """Import every module except the programs of live runtimes, and code that runs in them."""
    for found in pkgutil.walk_packages(interpreter.__path__, "interpreter."):
        if not re.search(r"\.(__main__|builtin|driver|code_\w+)\b", found.name):
            importlib.import_module(found.name)


def main(base_url: str) -> None:
    chatting = OpenInterpreter(auto_run=True)
    chatting.llm.model, chatting.llm.api_base, chatting.llm.api_key = "openai/scripted", base_url, "x"
    assert chatting.chat("hi", display=False)[-1]["content"] == "Hello."

    ran = chatting.chat("count", display=False)
    assert ran[1]["content"].startswith(
        "Python blocks need Linux or macOS. On Windows, run Open Interpreter inside WSL"
    )
    for language in ("shell", "javascript"):
        [output] = chatting.computer.run(language, "1")
        assert output["content"].endswith(" blocks need Linux or macOS. On Windows, run Open Interpreter inside WSL.\n")

    chatting.computer.python = "in-process"
    chatting.chat("count here")  # displayed as plain text
    assert chatting.computer.run("python", "n + 1")[0]["content"] == "43\n"
    assert "from a command" in chatting.computer.run("python", "!echo from a command")[0]["content"]
    chatting.computer.languages = [*chatting.computer.languages, Shout]
    assert chatting.computer.run("shout", "aloud")[0]["content"] == "ALOUD"

    assert chatting.undo().plan.notes == ("File undo needs Linux or macOS.",)
    chatting.sandbox = "workspace"
    [output] = chatting.computer.run("python", "print(1)")
    assert output["content"] == "The sandbox is not available on Windows. Run Open Interpreter inside WSL to use it.\n"


if __name__ == "__main__":
    if not hasattr(sys, "getwindowsversion"):  # with all extras installed
        import_all()
    main(sys.argv[1])
