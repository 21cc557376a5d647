"""`interpreter.connect(url)`: an interpreter on a server, used like a local one."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from interpreter.config.homes import our_folder
from interpreter.errors import BusyError, InterpreterError, UsageError
from interpreter.messages import Chunk, Message, as_original

_MAX_ATTEMPTS = 30  # to reconnect to a server that was available before


class RemoteInterpreter(AbstractContextManager["RemoteInterpreter"]):
    """A session on a server, with the interface of `OpenInterpreter`: `session` by its id, or a new one.

    Without a token, it is that of INTERPRETER_API_KEY, or of the server that you run on this machine. With `auto_run`,
    blocks are approved here, as they come. The server's rules, scans and sandbox can still ask; then the answer is no
    unless you give it.
    """

    def __init__(self, url: str, token: str | None = None, session: str | None = None, **settings: Any) -> None:
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token or _known_token(self._url)}"}
        self.http = httpx.Client(base_url=self._url, headers=headers, timeout=httpx.Timeout(30, read=None))
        self.auto_run: bool = settings.pop("auto_run", False)
        workspace = settings.pop("workspace", None)
        self.computer = RemoteComputer(self)
        self.last_messages_count = 0
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        try:
            if session is None:
                place = {"workspace": workspace} if workspace else {}
                session = self.ask("POST", "/api/sessions", {"settings": settings, **place})["id"]
            self.id: str = session
            if settings:
                self.ask("PATCH", self.path, {"settings": settings})
            self.ask("GET", self.path)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        return f"/api/sessions/{self.id}"

    def file_address(self, name: str) -> str:
        return f"{self.path}/files/{quote(name)}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request and return the server's answer, or raise its error."""
        try:
            answer = self.http.request(method, path, json=body)
        except httpx.TransportError as error:
            raise InterpreterError(f"Can't reach {self._url}: {error}.") from error
        return _checked(answer)

    # -- chatting ------------------------------------------------------------------------------------------------

    def chat(
        self,
        message: str | Message | None = None,
        display: bool = True,
        stream: bool = False,
        blocking: bool = True,
    ) -> Any:
        """Send a message. Returns the new messages, with `stream` a generator of chunks, or None if not blocking."""
        if message is None:
            raise UsageError("chat() with a server needs a message.")
        if not blocking:
            self._thread = threading.Thread(target=self._chat_in_background, args=[message, display], daemon=True)
            self._thread.start()
            return None
        chunks = self._turn(message, _terminal() if display else None)
        if stream:
            return chunks
        with closing(chunks):
            for _ in chunks:
                pass
        return self.messages[self.last_messages_count :]

    def _chat_in_background(self, message: Any, display: bool) -> None:
        try:
            self.chat(message, display)
        except Exception as error:  # noqa: BLE001 - raised in wait()
            self._error = error

    def wait(self) -> list[Message]:
        """Wait for a chat with `blocking=False` and return its new messages."""
        if self._thread is not None:
            self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self.messages[self.last_messages_count :]

    def _turn(self, message: Any, terminal: Any) -> Generator[Chunk]:
        """Yield the chunks of the turn that answers a message. A terminal shows them, and asks its questions."""
        content = message if isinstance(message, str) else message.get("content")
        self.last_messages_count = len(self.messages) + 1
        accepted = self.ask("POST", f"{self.path}/messages", {"content": content})
        over, mine = False, False
        try:
            for event in self.events(accepted["position"]):
                data, kind = event["data"], event["kind"]
                if event["action"] == accepted["turn"] and kind == "action" and data["state"] == "ended":
                    over = True
                    if "text" in data:
                        raise InterpreterError(data["text"])
                    return
                last = (data.get("messages") or [data])[-1]
                mine = mine or (last.get("role") == "user" and last.get("content") == content)
                if not mine:
                    continue  # events before the message don't belong to its answer
                chunk = as_original(data) if "type" in data and data.get("role") != "user" else None
                if chunk is not None:
                    if terminal is not None:
                        terminal.display.show(chunk)
                    yield chunk
                if "question" in data and kind != "answer":
                    self._answer(data, terminal)
        finally:
            if terminal is not None:
                terminal.display.finish()
            if not over:  # the consumer stopped reading
                self.cancel()

    def _answer(self, data: dict[str, Any], terminal: Any) -> None:
        """Answer a question after the consumer has seen it; as in 0.4.3, to read on past a block is to approve it."""
        question = next((each for each in self.pending if each["id"] == data["question"]), None)
        if question is None:
            return
        only_mode = question["kind"] == "block" and not {"reason", "findings", "widening"} & question.keys()
        body = {"choice": "refuse"}
        if only_mode and (self.auto_run or terminal is None):
            body = {"choice": "approve", "digest": question["digest"]}
        elif terminal is not None and question["kind"] in ("text", "password"):
            typed = terminal.ask("", password=question["kind"] == "password")
            body = {"choice": "answer", "text": typed} if typed is not None else body
        elif terminal is not None:
            from interpreter.frontends.terminal.render.notes import card

            if lines := card(question):
                terminal.tell(lines)
            if terminal.confirm("Run this code?" if question["kind"] == "block" else "Allow this?"):
                choice = "grant" if "grant" in question["choices"] else "approve"
                body = {"choice": choice, "digest": question["digest"]}
        self.answer(question["id"], **body)

    def events(self, after: str = "0") -> Iterator[dict[str, Any]]:
        """Yield all events after a position, then new ones. Reconnects if the connection breaks."""
        failures = 0
        while True:
            try:
                stream = self.http.stream(
                    "GET",
                    f"{self.path}/events",
                    params={"after": after},
                    headers={"Accept": "text/event-stream"},
                    timeout=httpx.Timeout(60),
                )
                with stream as answer:
                    if answer.is_error:
                        answer.read()
                        _checked(answer)
                    for line in answer.iter_lines():
                        failures = 0
                        if line.startswith("data: "):
                            event = json.loads(line[6:])
                            after = event["position"]
                            yield event
            except httpx.TransportError as error:
                failures += 1
                if failures > _MAX_ATTEMPTS:
                    raise InterpreterError(f"Lost the connection to {self._url}: {error}.") from error
                time.sleep(min(5.0, 0.1 * 2**failures))

    # -- the rest --------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        return self.ask("GET", f"{self.path}/messages")["messages"]  # type: ignore[no-any-return]

    @property
    def pending(self) -> list[dict[str, Any]]:
        """List the questions that wait for an answer."""
        return self.ask("GET", f"{self.path}/questions")["questions"]  # type: ignore[no-any-return]

    def answer(self, question: str, choice: str, **more: Any) -> None:
        """Answer a question: `approve` needs its `digest`; `edit` and `answer` take a `text`."""
        try:
            self.ask("POST", f"{self.path}/questions/{question}", {"choice": choice, **more})
        except InterpreterError:
            if any(each["id"] == question for each in self.pending):
                raise  # otherwise another client answered first

    def cancel(self) -> None:
        """End the turn or the block that is running."""
        self.ask("POST", f"{self.path}/cancel")

    def reset(self) -> None:
        """Continue with a new session in the same workspace."""
        self.id, self.last_messages_count = self.ask("POST", f"{self.path}/reset")["id"], 0

    def undo(self, count: int = 1, parts: list[str] | None = None, blocks: bool = False) -> dict[str, Any]:
        """Undo the last turns, or with `blocks` the last blocks; return the restored files, and what stays changed."""
        return self._go("undo", count, parts, blocks)

    def redo(self, count: int = 1, parts: list[str] | None = None, blocks: bool = False) -> dict[str, Any]:
        """Redo what was undone."""
        return self._go("redo", count, parts, blocks)

    def _go(self, name: str, count: int, parts: list[str] | None, blocks: bool) -> dict[str, Any]:
        body = {"count": count, "blocks": blocks, **({"parts": parts} if parts else {})}
        return self.ask("POST", f"{self.path}/{name}", body)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the connection. The session stays."""
        self.http.close()

    def __exit__(self, *error: object) -> None:
        self.close()


class RemoteComputer:
    """The computer of a session on a server."""

    def __init__(self, interpreter: RemoteInterpreter) -> None:
        self._interpreter = interpreter

    def run(self, language: str, code: str, stream: bool = False, display: bool = False) -> Any:
        """Run code on the server. Return its messages, or with `stream` an iterator over them."""
        remote = self._interpreter
        output = remote.ask("POST", f"{remote.path}/run", {"language": language, "code": code})["output"]
        messages = [{name: value for name, value in each.items() if name != "role"} for each in output]
        if display:
            terminal = _terminal()
            for message in output:
                terminal.display.show(message)
            terminal.display.finish()
        return iter(messages) if stream else messages

    def variables(self) -> dict[str, list[dict[str, Any]]]:
        """Return the live variables by language."""
        remote = self._interpreter
        return remote.ask("GET", f"{remote.path}/variables")["variables"]  # type: ignore[no-any-return]

    def upload(self, path: str, name: str = "") -> None:
        """Copy a file from here into the workspace."""
        remote, kind = self._interpreter, {"Content-Type": "application/octet-stream"}
        with open(path, "rb") as file:
            _checked(remote.http.put(remote.file_address(name or Path(path).name), content=file, headers=kind))

    def download(self, name: str) -> bytes:
        """Return the content of a file of the workspace."""
        remote = self._interpreter
        answer = remote.http.get(remote.file_address(name))
        return answer.content if answer.is_success else _checked(answer)


connect = RemoteInterpreter


def _checked(answer: httpx.Response) -> Any:
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        error = answer.json()["error"]
        message, kind = error["message"], error["type"]
    except (ValueError, KeyError, TypeError):
        message, kind = f"The server answered {answer.status_code}.", ""
    raise BusyError(message) if kind == "busy" else InterpreterError(message)


def _known_token(url: str) -> str:
    if token := os.environ.get("INTERPRETER_API_KEY"):
        return token
    if urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1"):
        with suppress(OSError):
            return (our_folder("data") / "server" / "token").read_text("utf-8").strip()
    raise UsageError("connect() needs the token of the server: connect(url, token=...), or INTERPRETER_API_KEY.")


def _terminal() -> Any:
    from interpreter.frontends.terminal.terminal import Terminal

    return Terminal()
