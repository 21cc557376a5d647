"""Tasks in OS mode: the desktop, the user's message, the scripted model's actions, and the check of the result."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from anthropic_server import AnthropicServer
from browser.web_app import WebApp, serving
from interpreter import OpenInterpreter
from interpreter.messages import Chunk, Message
from model_server import AnyReply, ModelServer, text, tool_call
from responses_server import ResponsesServer
from screen.desktop import SYSTEM_PYTHON, Application, Desktop

Kind = Literal["tools", "text", "anthropic", "openai"]
SERVERS = {"tools": ModelServer, "text": ModelServer, "anthropic": AnthropicServer, "openai": ResponsesServer}
MODELS = {"anthropic": "anthropic/claude-sonnet-4-5", "openai": "openai/responses/computer-use-preview"}
PROGRAMS = Path(__file__).parent / "programs"
NUMBERS = re.compile(r"at (-?\d+),(-?\d+)$")


@dataclass
class Seen:
    """The request that the model answers."""

    body: dict[str, Any]

    @property
    def last(self) -> str:
        """Return the text of the last message."""
        return "\n".join(_texts(self.messages[-1]))

    @property
    def all(self) -> str:
        return "\n".join(word for message in self.messages for word in _texts(message))

    @property
    def messages(self) -> list[Any]:
        sent: list[Any] = self.body.get("messages") or self.body["input"]
        return sent

    def pictures(self) -> int:
        return str(self.body).count("data:image/png;base64,") + str(self.body).count("'type': 'base64'")

    def place(self, *words: str) -> tuple[int, int]:
        """Return the position of the element with these words, from the newest list that has it."""
        lists = self.all.split("On it (")[1:]
        for line in (line for listed in reversed(lists) for line in listed.splitlines()):
            where = NUMBERS.search(line)
            if where and all(word in line for word in words):
                return int(where[1]), int(where[2])
        raise AssertionError(f"nothing with {words} is in:\n{lists}")


Turn = str | AnyReply | Callable[[Seen], "str | AnyReply"]


@dataclass
class World:
    """The environment of a task."""

    desktop: Desktop
    folder: Path
    web: WebApp
    interpreter: OpenInterpreter = field(default_factory=OpenInterpreter)
    chunks: list[Chunk] = field(default_factory=list)
    requests: list[Seen] = field(default_factory=list)
    known: dict[str, Any] = field(default_factory=dict)

    def file(self, name: str = "result.json", content: str | None = None) -> Path:
        file = self.folder / name
        if content is not None:
            file.write_text(content, "utf-8")
        return file

    def editor(self, name: str = "letter.txt", content: str = "") -> Application:
        editor = self.wait_for_element("File", self.desktop.editor(self.file(name, content)))
        display = self.interpreter.computer.display
        self.until(lambda: any("focused" in e.get("states", ()) for e in display.elements()), "the text to be focused")
        return editor

    def order(self) -> Application:
        return self.wait_for_element("Save order", self.desktop.qt_dialog(self.file()))

    def wait_for_element(self, element: str, application: Application) -> Application:
        """Wait for an element: programs publish their elements a moment after the window opens."""
        display = self.interpreter.computer.display
        self.until(lambda: any(e["name"] == element for e in display.elements()), f"the element {element}")
        return application

    def program(self, name: str, *args: str, title: str) -> Application:
        """Start one of the small programs in `programs/`."""
        return self.desktop.start(SYSTEM_PYTHON, str(PROGRAMS / f"{name}.py"), *args, title=title)

    def until(self, condition: Callable[[], Any], what: str) -> None:
        self.desktop.until(condition, what)

    def written(self, name: str = "result.json") -> str:
        """Read a file as soon as it exists and is not empty."""
        file = self.folder / name
        self.until(lambda: file.exists() and file.stat().st_size, f"the file {name}")
        return file.read_text("utf-8")

    def has(self, name: str, content: str) -> None:
        """Wait until a file has this content."""
        file = self.folder / name
        read = lambda: file.read_text("utf-8") if file.exists() else None  # noqa: E731
        self.until(lambda: read() == content, f"{name} to be {content!r}, it is {read()!r}")

    @property
    def outputs(self) -> str:
        """Return the output of the blocks, and the descriptions of the screen."""
        return "".join(str(m["content"]) for m in self.messages if m["type"] == "console")

    @property
    def messages(self) -> list[Message]:
        return self.interpreter.messages

    def calls(self) -> list[dict[str, Any]]:
        return [c["content"] for c in self.chunks if c["type"] == "status" and c.get("format") == "call"]


@dataclass(frozen=True)
class Task:
    """One task; `turns` are the model's replies: code, an answer, or a function that returns one."""

    name: str
    says: str
    turns: Sequence[Turn]
    check: Callable[[World], Any]
    start: Callable[[World], Any] = lambda world: None
    model: Kind = "tools"
    language: str = "python"
    needs: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    vision: bool = True
    monitors: int = 1


@contextmanager
def set_up(task: Task, desktop: Desktop, folder: Path) -> Iterator[World]:
    """Set up a task's world, with its applications on the desktop and a scripted model."""
    with ExitStack() as stack:
        web = stack.enter_context(serving())
        world = World(desktop, folder, web)
        if task.monitors == 2:
            desktop.two_monitors()
            stack.callback(desktop.one_monitor)
        stack.callback(tidy, desktop)
        server = stack.enter_context(SERVERS[task.model]([_reply(world, task, turn) for turn in (*task.turns, "")]))
        world.interpreter = OpenInterpreter(
            os=True, auto_run=True, stream_all=True, workspace=str(folder), **task.settings
        )
        stack.callback(world.interpreter.computer.terminate)
        llm = world.interpreter.llm
        llm.model = MODELS.get(task.model, llm.model)
        llm.api_base, llm.api_key, llm.max_retries = server.base_url, "key", 0
        llm.supports_vision, llm.supports_functions = task.vision, task.model != "text"
        task.start(world)
        yield world


def tidy(desktop: Desktop) -> None:
    """End all applications, including those a task started."""
    desktop.close_applications()
    for window in desktop.windows():
        for pid in desktop.processes(window):
            os.kill(pid, signal.SIGTERM)
    desktop.until(lambda: not desktop.windows(), "all windows to close")


def run_task(task: Task, desktop: Desktop, folder: Path) -> None:
    """Run a task, and check the result."""
    with set_up(task, desktop, folder) as world:
        world.chunks = list(world.interpreter.chat(task.says, display=False, stream=True))
        task.check(world)


def task(*turns: Any, **more: Any) -> Task:
    """Make a task in an editor."""
    return Task("", "Go", turns, lambda world: None, lambda world: world.editor("letter.txt"), **more)


def run(world: World, words: str = "Go") -> Iterator[Chunk]:
    for chunk in world.interpreter.chat(words, display=False, stream=True):
        world.chunks.append(chunk)
        yield chunk


def run_all(world: World, words: str = "Go") -> World:
    for _ in run(world, words):
        pass
    return world


def _reply(world: World, task: Task, turn: Turn) -> Callable[[dict[str, Any]], AnyReply]:
    def reply(body: dict[str, Any]) -> AnyReply:
        seen = Seen(body)
        world.requests.append(seen)
        action = turn(seen) if callable(turn) else turn
        if not isinstance(action, str):
            return action
        action = action.format(world=world, folder=world.folder, url=world.web.url) if not callable(turn) else action
        if not action:
            return done(task.model)
        if task.model == "text":
            return text(f"I do it.\n\n```{task.language}\n{action}\n```\n")
        return tool_call(task.language, action)

    return reply


def done(model: Kind) -> AnyReply:
    """Return the model's last reply."""
    import anthropic_server
    import responses_server

    match model:
        case "anthropic":
            return anthropic_server.message(anthropic_server.say("Done."))
        case "openai":
            return responses_server.response(responses_server.say("Done."))
    return text("Done.")


def _texts(message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content", message.get("output"))
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
        elif isinstance(part, dict) and "content" in part:
            yield from _texts(part)


def clipboard_text(desktop: Desktop) -> str:
    """Read the clipboard's text with a separate program."""
    command = ["xclip", "-selection", "clipboard", "-o"]
    return subprocess.run(command, env=desktop.env, capture_output=True, text=True, timeout=60).stdout
