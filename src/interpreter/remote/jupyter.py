"""Kernels of a Jupyter server, a JupyterHub or an Enterprise Gateway, over their REST and WebSocket interface."""

from __future__ import annotations

import ast
import contextlib
import getpass
import itertools
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from interpreter.errors import RemoteError, SettingError
from interpreter.host.installation import install_hint
from interpreter.questions import Question, Step, read_input
from interpreter.remote.keeper import About
from interpreter.remote.machine import RETRY_DELAYS, RemoteLanguage
from interpreter.runtimes.base import BaseLanguage
from interpreter.runtimes.block import (
    RunningBlock,
    Spool,
    closing_chunk,
    console,
    display_chunks,
    notice,
    outputs_folder,
)
from interpreter.runtimes.protocol import MAX_FRAME_BYTES, Frame, free
from interpreter.runtimes.sharing import (
    KERNEL_FORMS,
    SHARE_MIME,
    error_text,
    in_form,
    input_value,
    kernel_setup,
    kernel_takes,
)
from interpreter.runtimes.state import Completions, Variable

if TYPE_CHECKING:
    from interpreter.remote.machines import Connect

ANSWER_TIMEOUT = 60.0  # seconds for the server to answer a request; a cluster may take longer to start a kernel
START_TIMEOUT = 300.0
LIST_TIMEOUT = 5.0
MAX_SHARED_LENGTH = 10_000_000  # characters as JSON; a server takes messages of 10 MiB
QUIET_TIME = 5.0  # seconds without a message before checking that the kernel still exists
NO_UNDO = (
    "Files on {name} are not covered by undo, and neither are variables: the kernels of a Jupyter server have none."
)
LIST = (
    "[(n, type(v).__name__, repr(v)[:80]) for n, v in list(globals().items()) if n[:1] != '_' and n not in "
    "('In', 'Out', 'exit', 'quit', 'open', 'get_ipython') and type(v).__name__ not in ('module', 'function', 'type')]"
)
Message = dict[str, Any]


class JupyterServer:
    """A Jupyter server as a machine of a session; each language has a kernel there."""

    place: str | None = None

    def __init__(self, address: str, name: str = "", keep: float = 3600, computer: Any = None) -> None:
        parts = urlsplit(address.removeprefix("jupyter+"))
        given = parse_qs(parts.query)
        if parts.scheme not in ("http", "https") or not parts.hostname or given.keys() - {"token", "kernel"}:
            raise SettingError(
                f"{address.partition('?')[0]} is not an address such as jupyter+https://host/?token=... "
                "(and kernel=...)."
            )
        port = f":{parts.port}" if parts.port else ""
        self._base = f"{parts.scheme}://{parts.hostname}{port}{parts.path.rstrip('/')}"
        self._headers = {"Authorization": f"token {given['token'][0]}"} if "token" in given else {}
        self._kernel = given.get("kernel", [""])[0]
        self.name, self.keep, self.computer = name or f"{parts.hostname}{port}", keep, computer
        self.workspace, self.label = "~", f"the folder of the kernels on {self.name}"
        self.about: About | None = None
        self.kernels: dict[str, str] = {}  # the kernel of each language, by its name in lower case

    @property
    def connected(self) -> bool:
        return self.about is not None

    def connecting(self) -> Iterator[Question]:
        """List the kernels of the server; this never asks questions."""
        if self.about is None:
            if find_spec("websockets") is None:
                raise RemoteError(f"For a Jupyter server, install websockets: {install_hint('jupyter')}")
            reply = self.ask("GET", "/api/kernelspecs")
            specs = reply.get("kernelspecs")
            specs = specs if isinstance(specs, dict) else {}
            chosen = [self._kernel] if self._kernel else [reply.get("default"), *specs]
            if self._kernel and self._kernel not in specs:
                raise RemoteError(f"{self.name} has no kernel {self._kernel}. It has: {', '.join(specs) or 'none'}.")
            for each in [name for name in chosen if name in specs]:
                language = specs[each].get("spec", {}).get("language")
                if isinstance(language, str):
                    self.kernels.setdefault(language.lower(), each)
            self.about = About(f"a Jupyter server at {self.name}", "its user", dict(self.kernels))
        yield from ()

    def ask(self, method: str, path: str, body: Any = None, timeout: float = ANSWER_TIMEOUT) -> dict[str, Any]:
        """Call the server. Raises RemoteError if it can't be reached or refuses."""
        import httpx

        try:
            reply = httpx.request(method, self._base + path, json=body, headers=self._headers, timeout=timeout)
            if reply.status_code in (401, 403) and "not authorized" not in reply.text:
                raise RemoteError(f"{self.name} refuses the token. Check the address: jupyter+https://host/?token=...")
            if reply.status_code >= 400:
                raise RemoteError(f"{self.name} answered {reply.status_code} to {method} {path}: {reply.text[:300]}")
            parsed = reply.json() if reply.content else {}
        except httpx.HTTPError as error:
            raise RemoteError(f"Can't reach {self.name}: {error or type(error).__name__}") from error
        except ValueError as error:
            raise RemoteError(f"{self.name} is not a Jupyter server: its answer is not JSON.") from error
        return parsed if isinstance(parsed, dict) else {}

    def open(self, kernel: str, session: str) -> Any:
        """Connect to a kernel; messages that it sent while nothing was connected arrive first."""
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import connect

        address = f"ws{self._base.removeprefix('http')}/api/kernels/{kernel}/channels?session_id={session}"
        try:
            made = connect(
                address, additional_headers=self._headers, max_size=MAX_FRAME_BYTES, open_timeout=ANSWER_TIMEOUT
            )
            return made.__enter__()  # closed in `terminate`
        except (OSError, TimeoutError, WebSocketException) as error:
            raise RemoteError(f"Can't reach the kernel on {self.name}: {error}") from error

    def languages(self, here: list[type[BaseLanguage]], is_own: bool) -> list[type[BaseLanguage]]:
        """List the languages that Open Interpreter knows; those without a kernel there report that they are missing."""
        return [JupyterLanguage.of(each, self, is_own, there=each.name.lower(), covered_by_undo=False) for each in here]

    def record(self, limits: tuple[int, int, int]) -> None:
        """Return None: the server gives no access to the files of its kernels."""

    def connection(self) -> Connect:
        """Make the action that connects to this server."""
        from interpreter.remote.machines import Connect

        return Connect(self)

    def close(self) -> None:
        """Forget the kernels, which end when their languages are terminated."""
        self.about = None
        self.kernels.clear()


class Asked(RunningBlock):
    """A request to a kernel. It ends when the kernel has replied and is idle again."""

    def __init__(self) -> None:
        super().__init__(0, "", Spool(outputs_folder))
        self.reply: Message | None = None
        self.is_idle = False


class JupyterLanguage(RemoteLanguage):
    """A language whose blocks a kernel of a Jupyter server runs."""

    machine: Any

    def __init__(self, computer: Any = None) -> None:
        super().__init__(computer)
        self._id = ""  # of the kernel
        self._session = secrets.token_hex(8)
        self._socket: Any = None
        self._waiting: dict[str, Asked] = {}  # by the id of the request
        self._probe = ""  # the request whose answer comes after everything that was buffered
        self._lock = threading.Lock()
        self._request = ""
        self._numbers = itertools.count(1)
        self._shared: dict[str, int] = {}  # the shared values that the kernel has, by their numbers
        self._is_set_up = False  # whether it has `share`

    def undo_notice(self) -> str:
        return NO_UNDO.format(name=self.machine.name)

    # -- the kernel --------------------------------------------------------------------------------------------------

    def _started(self) -> Any:
        """Return the connection to the kernel, and start a kernel if there is none."""
        if self._socket is None:
            if not self._id:
                kernel = self.machine.kernels.get(self.there)
                if kernel is None:
                    raise RemoteError(f"{self.machine.name} has no kernel for {self.there}.")
                # A gateway runs the kernel as that user, and these variables choose its place in the cluster.
                env = {"KERNEL_USERNAME": getpass.getuser()}
                env |= {name: value for name, value in os.environ.items() if name.startswith("KERNEL_")}
                started = self.machine.ask("POST", "/api/kernels", {"name": kernel, "env": env}, START_TIMEOUT)
                self._id = str(started.get("id", ""))
                self._shared, self._is_set_up = {}, False
            self._socket = self.machine.open(self._id, self._session)
            threading.Thread(target=self._read, args=(self._socket,), name=self.name, daemon=True).start()
        return self._socket

    def _read(self, connection: Any) -> None:
        """Dispatch what the kernel sends, and connect again when the connection is lost."""
        from websockets.exceptions import WebSocketException

        until = time.monotonic() + self.machine.keep
        tries = iter(itertools.chain(RETRY_DELAYS, itertools.repeat(RETRY_DELAYS[-1])))
        while self._socket is connection:
            try:
                while True:
                    try:
                        data = connection.recv(QUIET_TIME)
                    except TimeoutError:
                        for parent in [
                            each for each, block in self._waiting.items() if block.is_idle and self._stopped
                        ]:
                            # An interrupt inside ipykernel's own code loses the reply, so end the block without it.
                            self._handle("execute_reply", {"status": "error"}, parent)
                        if self._waiting:  # the server doesn't report that a kernel was deleted
                            self.machine.ask("GET", f"/api/kernels/{self._id}")
                        continue
                    until = time.monotonic() + self.machine.keep
                    if hasattr(
                        socket, "TCP_QUICKACK"
                    ):  # the server holds small messages back until we confirm the last
                        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                    self._take(data)
            except (OSError, WebSocketException, RemoteError):
                pass
            while self._socket is connection:
                self._tell(f"Lost the connection to {self.machine.name}. Trying to connect again.")
                try:
                    state = self.machine.ask("GET", f"/api/kernels/{self._id}").get("execution_state")
                    connection = self._socket = self.machine.open(self._id, self._session)
                    self._tell(f"Connected to {self.machine.name} again.")
                    if state == "idle" and self._waiting:
                        self._probe, _ = self.request("kernel_info_request", {})
                    break
                except RemoteError as error:
                    if "404" in str(error) or time.monotonic() > until:
                        self._fail(f"The kernel on {self.machine.name} is gone, and its variables are lost. {error}")
                        return
                threading.Event().wait(next(tries))

    def _take(self, data: Any) -> None:
        """Dispatch a message of the kernel to its block; malformed messages are ignored."""
        try:
            message = json.loads(data)
            kind, content = message["header"]["msg_type"], message["content"]
            parent = (message.get("parent_header") or {}).get("msg_id", "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return  # not a message of a kernel
        if isinstance(kind, str) and isinstance(content, dict) and isinstance(parent, str):
            self._handle(kind, content, parent)

    def _handle(self, kind: str, content: Message, parent: str) -> None:
        if kind == "status" and content.get("execution_state") in ("dead", "restarting", "autorestarting"):
            self._fail(f"The kernel on {self.machine.name} died. Its variables are lost.", keep=True)
            self._shared, self._is_set_up = {}, False
            return
        block = self._waiting.get(parent)
        if block is None:
            return
        if kind.endswith("_reply"):
            block.reply = content
        elif kind != "status":
            block.nudge({"event": "message", "kind": kind, "content": content})
        elif content.get("execution_state") == "idle":
            block.is_idle = True
        if block.reply is not None and block.is_idle:
            del self._waiting[parent]
            block.finished = True
            block.end({"event": "ran", "reply": block.reply})
            if parent == self._probe:
                self._fail("The rest of its output was lost with the connection.", keep=True)
            elif parent == self._request and self.on_end is not None:
                self.on_end()

    def _tell(self, message: str) -> None:
        for block in list(self._waiting.values()):
            block.nudge({"event": "told", "words": message})

    def _fail(self, message: str, keep: bool = False) -> None:
        waiting, self._waiting = self._waiting, {}
        for block in waiting.values():
            block.end({"event": "lost", "words": message})
        if not keep:
            self._id, self._socket = "", None

    def request(self, kind: str, content: Message, channel: str = "shell") -> tuple[str, Asked]:
        """Send a message to the kernel. Returns its id, and the block that its answers arrive in."""
        number = f"{self._session}-{next(self._numbers)}"
        header = {"msg_id": number, "msg_type": kind, "username": "", "session": self._session, "version": "5.3"}
        header["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        sent = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": channel}
        block = Asked()
        if channel == "shell":
            self._waiting[number] = block
        with self._lock:
            self._started().send(json.dumps({**sent, "buffers": []}))
        return number, block

    # -- a block -------------------------------------------------------------------------------------------------

    def begin(self, code: str) -> tuple[Any, RunningBlock]:
        self._started()
        # The kernel first needs `share` itself, then the values that other languages share.
        form, context = KERNEL_FORMS.get(self.there, "none"), self.context
        new = {name: each for name, each in context.shared.items() if self._shared.get(name) != each.number}
        self._shared |= {name: each.number for name, each in new.items()}
        codes = {} if self._is_set_up else {"": kernel_setup(self.there, context.max_shared)}
        for name, value in in_form(form, new):
            codes[name] = kernel_takes(self.there, [[name, value]], context.max_shared)
        self._is_set_up, too_large = True, []
        for name, setting in codes.items() if form != "none" else ():
            if len(json.dumps(setting)) > MAX_SHARED_LENGTH:
                too_large.append(name)
            else:
                self.request("execute_request", {"code": setting, "silent": True})
        self._request, block = self.request(
            "execute_request",
            {"code": code, "silent": False, "store_history": True, "allow_stdin": True, "stop_on_error": False},
        )
        for name in too_large:
            block.nudge({"event": "told", "words": f"{name} is too large to be shared with a kernel on a server."})
        return self._request, block

    def _chunks(self, run: Any, block: RunningBlock, event: Frame) -> Iterator[Step]:
        content = event.get("content", {})
        match event["event"], event.get("kind"):
            case "told", _:
                yield notice(event["words"] + "\n")
            case "ran", _:
                failed = event["reply"].get("status") != "ok"
                ended = "interrupted" if failed and self._stopped else "error" if failed else "done"
                yield closing_chunk(130 if ended == "interrupted" else int(failed), ended)
            case "lost", _:
                yield from super()._chunks(run, block, event)
            case _, "stream":
                text, name = str(content.get("text", "")), str(content.get("name", ""))
                block.spool.write(text)
                yield console(text, name)
            case _, "display_data" | "execute_result":
                data = content.get("data")
                if not free(dict, 100)(data):
                    return
                if SHARE_MIME in data:
                    name, _, value = str(data[SHARE_MIME]).partition(" ")
                    yield from self._take_shared(name, value, self._shared)
                else:
                    yield from display_chunks(data, self.context.emit_images)
            case _, "error":
                yield console(error_text(content), "stderr")
            case _, "input_request":
                secret, prompt = bool(content.get("password")), str(content.get("prompt", ""))
                answer = yield from read_input(prompt, secret, self.context.on_input)
                if answer is not None or not self._stopped:
                    self.request("input_reply", {"value": input_value(answer, self.there), "status": "ok"}, "stdin")

    def stop(self) -> None:
        self._stopped = True
        if self._run is not None and self._id:
            with contextlib.suppress(RemoteError):
                self.machine.ask("POST", f"/api/kernels/{self._id}/interrupt")

    def detach(self) -> None:
        """Do nothing: a kernel runs one block at a time, so a block can't go to the background."""

    def terminate(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()
        if self._id:
            with contextlib.suppress(RemoteError):
                self.machine.ask("DELETE", f"/api/kernels/{self._id}")
            self._id = ""

    # -- between blocks ------------------------------------------------------------------------------------------

    def _query(self, kind: str, content: Message) -> Message:
        """Ask the kernel and return its reply; empty if it is busy or not connected."""
        if self._socket is None or self._run is not None:
            return {}
        _, block = self.request(kind, content)
        block.ended.wait(LIST_TIMEOUT)
        return (block.last or {}).get("reply") or {}

    def variables(self) -> list[Variable]:
        if self.there != "python":
            return []
        asked = {"code": "", "silent": True, "store_history": False, "user_expressions": {"listed": LIST}}
        try:
            rows = ast.literal_eval(
                self._query("execute_request", asked)["user_expressions"]["listed"]["data"]["text/plain"]
            )
            return [Variable(str(name), str(kind), str(shown)) for name, kind, shown in rows]
        except (KeyError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError):
            return []

    def look(
        self, name: str, rows: Any = (0, 50), columns: Any = (0, 50), view: Any = None, again: bool = False
    ) -> Any:
        return BaseLanguage.look(self, name)

    def stop_looking(self) -> None:
        """Do nothing: `look` never takes long here."""

    def complete(self, code: str, cursor: int) -> Completions:
        reply = self._query("complete_request", {"code": code, "cursor_pos": cursor})
        matches, start = reply.get("matches"), reply.get("cursor_start")
        if not isinstance(matches, list) or not isinstance(start, int):
            return Completions(cursor)
        return Completions(max(0, min(start, cursor)), [(str(each), "") for each in matches[:1000]])
