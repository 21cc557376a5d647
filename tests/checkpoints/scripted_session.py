"""An interpreter with its own workspace and a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from interpreter import OpenInterpreter
from interpreter.messages import Message
from model_server import ModelServer, text, tool_call

Code = str | tuple[str, str]
"""Python, or another language and its code."""


class ScriptedSession:
    """Takes turns, runs blocks, and reads the resulting state."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.root, self.sessions = folder, folder / "work", folder / "sessions"
        self.root.mkdir(exist_ok=True)
        self.server = ModelServer().start()
        defaults = {"workspace": str(self.root), "conversation_history_path": str(self.sessions), "auto_run": True}
        self.interpreter = OpenInterpreter(**{**defaults, "stream_all": True, **settings})
        self.interpreter.llm.api_base, self.interpreter.llm.api_key = self.server.base_url, "key"
        self.interpreter.llm.max_retries = 0

    def close(self) -> None:
        self.interpreter.computer.terminate()
        self.interpreter.reset()
        self.interpreter.journal.close()
        self.server.close()

    def turn(self, words: str, *blocks: Code) -> list[Message]:
        """Send a message, to which the model writes blocks and then replies."""
        pairs = [("python", code) if isinstance(code, str) else code for code in blocks]
        self.server.add(*(tool_call(language, code) for language, code in pairs), text(f"Done: {words}."))
        return list(self.interpreter.chat(words, display=False))

    def run_block(self, code: Code) -> list[Message]:
        """Run a block of the user."""
        language, code = ("python", code) if isinstance(code, str) else code
        return list(self.interpreter.computer.run(language, code))

    def write(self, path: str, data: str) -> None:
        (self.root / path).write_text(data)

    def read(self, path: str) -> str | None:
        file = self.root / path
        return file.read_text() if file.exists() else None

    def value(self, name: str) -> str | None:
        """Return the preview of a Python variable, or None; this runs no block."""
        variables = self.interpreter.computer.variables("python")["Python"]
        return next((each.preview for each in variables if each.name == name), None)

    @property
    def user_messages(self) -> list[str]:
        """Return the user's messages in the conversation."""
        return [str(each["content"]) for each in self.interpreter.messages if each["role"] == "user"]

    @property
    def state(self) -> tuple[list[str], str | None, str | None]:
        """Return the user's messages, the file `a`, and the variable `x`."""
        return self.user_messages, self.read("a"), self.value("x")


def step(number: int) -> str:
    """Write a block that changes the file `a` and the variable `x`."""
    return f"x = {number}\nwith open('a', 'w') as file:\n    _ = file.write('{number}')"
