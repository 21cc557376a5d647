"""The worker of HTML and React: shows a page in a headless browser, and sends its picture and its scripts' output.

A model wrote the page, so the browser gets a temporary profile and a time limit, reads no file outside the workspace,
and runs in the session's sandbox if there is one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from interpreter.languages.bridge import Backend, Bridge, Frame, adopt, run_worker
from interpreter.languages.html.react import BuildError, Built, build, install

WIDTH, HEIGHT, MAX_HEIGHT = 960, 540, 2160  # pixels of the picture
LOAD_TIMEOUT, SETTLE_TIMEOUT, QUIET_TIME = 20.0, 3.0, 0.3  # seconds
IDLE_TIMEOUT = 60.0  # seconds that a browser waits for the next page
MAX_FRAMES = 5  # of a stack trace
READ, WRITE = 3, 4  # the descriptors where Chromium expects its connection
NOWHERE = "http://127.0.0.1:9"  # nothing listens there
ARGUMENTS = (
    *("--headless", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-extensions"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--mute-audio", "--disable-gpu", "--password-store=basic", "--use-mock-keychain"),
)
OFFLINE = (f"--proxy-server={NOWHERE}", "--proxy-bypass-list=<-loopback>")
NOT_SEEN = "There is no picture of the page: {why}. The user has the page itself.\n"
NO_BROWSER = "no browser is installed here (for example: apt install chromium)"
BEGINNING = re.compile(r"(?is)\A\s*(?:<!doctype[^>]*>)?\s*(?:<html[^>]*>)?\s*(?:<head[^>]*>)?")
CHARSET = re.compile(r"(?i)<meta[^>]+charset")
RELATIVE = re.compile(r"""(?i)\b(?:src|href)\s*=\s*["']?(?![a-z][a-z0-9+.-]*:|[/#"'{])""")
FRAME = re.compile(r"(?m)^(?:    at )?(?:([^(\n]+?) \()?file:[^()\n]*:(\d+):(\d+)\)?$")
PLACES = re.compile(r"%[sdifoOc]")


class BrowserGone(Exception):
    """The browser ended, or did not answer in time."""


class Chromium:
    """Chromium, and a DevTools protocol connection to it over two pipes."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.on_event: Callable[[str, Frame], None] = lambda method, params: None
        self.on_pause: Callable[[], None] = lambda: None  # called when all received messages are handled
        self._number, self._pending = 0, b""
        self.replies: dict[int, Frame] = {}
        self._errors = folder / "browser.log"
        theirs_in, self._write = os.pipe()
        self._read, theirs_out = os.pipe()
        far = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (theirs_in, theirs_out)]

        def connect() -> None:
            os.dup2(far[0], READ)
            os.dup2(far[1], WRITE)

        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=(READ, WRITE),
                preexec_fn=connect,
                process_group=0,
            )
        for fd in (theirs_in, theirs_out, *far):
            os.close(fd)

    def send(self, method: str, target: str = "", **params: Any) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        data = json.dumps(message | ({"sessionId": target} if target else {})).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._write, data) :]
        except OSError as error:
            raise BrowserGone(self.last_words()) from error
        return self._number

    def call(self, method: str, target: str = "", **params: Any) -> Frame:
        number = self.send(method, target, **params)
        self.wait(lambda: number in self.replies, LOAD_TIMEOUT)
        reply = self.replies.pop(number)
        if "error" in reply:
            raise BrowserGone(f"{method}: {reply['error'].get('message')}")
        return dict(reply["result"])

    def wait(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Handle the browser's messages until `is_over`. Raises BrowserGone if it is silent for too long."""
        while not is_over():
            if not self.listen(seconds):
                raise BrowserGone("it did not answer in time")

    def listen(self, seconds: float) -> bool:
        """Handle the next message. False if nothing comes in time."""
        if not select.select([self._read], [], [], max(seconds, 0))[0]:
            return False
        data = os.read(self._read, 1 << 20)
        if not data:
            raise BrowserGone(self.last_words())
        *messages, self._pending = (self._pending + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self.replies[message["id"]] = message
            else:
                self.on_event(message["method"], message["params"])
        self.on_pause()
        return True

    def last_words(self) -> str:
        self.close()
        lines = self._errors.read_text("utf-8", "replace").strip().splitlines()
        worst = next((line for line in lines if ":FATAL:" in line), lines[-1] if lines else "")
        return f"the browser ended ({worst.rpartition('] ')[2].strip()})"

    def close(self) -> None:
        if self.process.returncode is None:
            self.kill()
            self.process.wait()
            os.close(self._read)
            os.close(self._write)

    def kill(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # already ended


class Pages(Backend):
    """Shows one page per block."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._shared: dict[str, str] = {}  # values that other languages share, as JSON
        self._browser: Chromium | None = None
        self._running: subprocess.Popen[bytes] | None = None

    def run(self, frame: Frame, code: Path) -> None:
        adopt(frame)
        self._shared.update({name: as_json(text) for name, text in frame.get("shared", ())})
        try:
            status = self._show(frame, code.parent)
        except BuildError as error:
            self.bridge.stream("stderr", f"{error}\n")
            status = "error"
            if error.missing:
                self.bridge.done(status, 1, missing=error.missing)
                return
        if self.bridge.interrupted:
            status = "interrupted"
        self.bridge.done(status, {"ok": 0, "error": 1}.get(status, 130))

    def interrupt(self) -> None:
        if self._browser is not None and self._running is None:
            self._browser.kill()
        if self._running is not None:
            self._running.send_signal(signal.SIGINT)

    def _show(self, frame: Frame, folder: Path) -> str:
        source = frame["code"]
        made = Built(source)
        if self.bridge.config["react"]:
            if source.lstrip().startswith("npm install"):
                return "ok" if install(source.split()[2:], self._call) else "error"
            made = build(source, folder, self._call)
        base = Path.cwd().as_uri() + "/" if RELATIVE.search(source) else ""
        shared = {name: text for name, text in self._shared.items() if name in source}
        show = Showing(self.bridge, made.line)
        if self.bridge.config["browser"] is None:
            self.bridge.stream("stdout", NOT_SEEN.format(why=NO_BROWSER))
        else:
            self._picture(complete(made.page, base, shared), frame, folder, show)
        page = complete(made.small or made.page, base, shared)
        self.bridge.send(event="display", block=self.bridge.block, data={"text/html": page})
        return "error" if show.failed else "ok"

    def _call(self, command: list[str], stdin: str = "", visibly: bool = False) -> tuple[int, str]:
        """Run a program of the session. Returns its exit code and output."""
        self._running = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0
        )
        try:
            output = self._running.communicate(stdin.encode("utf-8", "surrogateescape"))[0].decode("utf-8", "replace")
            if visibly:
                self.bridge.stream("stdout", output)
            return self._running.returncode, output
        finally:
            self._running = None

    def _picture(self, page: str, frame: Frame, folder: Path, show: Showing) -> None:
        file = folder / "page.html"
        file.write_text(page, "utf-8", "surrogateescape", newline="")
        config = self.bridge.config
        command = [config["browser"], *ARGUMENTS, f"--user-data-dir={folder / 'browser'}"]
        command += [f"--window-size={WIDTH},{HEIGHT}", *(["--no-sandbox"] if config["contained"] else [])]
        command += OFFLINE if frame["offline"] else []
        if self._browser is not None and command != self._browser.process.args:
            self.idle()
        try:
            self._browser = show.browser = self._browser or Chromium(command, folder)
            if self.bridge.interrupted:
                self.interrupt()
            show.load(file, [str(file), frame["workspace"], os.getcwd()], frame["offline"])
        except (BrowserGone, OSError) as error:
            self.idle()
            if not self.bridge.interrupted:
                show.failed = show.failed or show.is_begun
                self.bridge.stream("stderr", NOT_SEEN.format(why=(show.is_begun and show.stuck) or error))
        self.bridge.idle_after = IDLE_TIMEOUT

    def idle(self) -> None:
        """Close the browser if no page has used it for a while."""
        if self._browser is not None:
            self._browser.close()
        self._browser = self.bridge.idle_after = None


class Showing:
    """A page that is being shown, and what happens in it."""

    stuck = f"it did nothing for {LOAD_TIMEOUT:.0f} seconds while it loaded; a script may run without end"
    browser: Chromium

    def __init__(self, bridge: Bridge, line: Callable[[int, int], tuple[int, int] | None]) -> None:
        self._bridge, self._line = bridge, line
        self.failed = self.is_begun = False
        self._is_loaded, self._changed = False, 0.0
        self._allowed: list[str] = []
        self._is_offline = False
        self._session = ""
        self._open: set[str] = set()  # unanswered requests
        self._name, self._said = "stdout", list[str]()  # unsent output

    def load(self, file: Path, allowed: list[str], is_offline: bool) -> None:
        """Load the page, wait until nothing more happens, and send its picture."""
        browser = self.browser
        self._allowed, self._is_offline = [os.path.realpath(path) for path in allowed], is_offline
        context = browser.call("Target.createBrowserContext", disposeOnDetach=True)["browserContextId"]
        target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            browser.call(f"{domain}.enable", self._session)
        browser.call("Fetch.enable", self._session, patterns=[{"urlPattern": "*"}])
        browser.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=context)
        browser.call("Runtime.setMaxCallStackSizeToCapture", self._session, size=0)  # with each message
        browser.on_event, browser.on_pause, self.is_begun = self.event, self._flush, True
        browser.send("Page.navigate", self._session, url=file.as_uri())
        browser.wait(lambda: self._is_loaded, LOAD_TIMEOUT)
        until, self._changed = time.monotonic() + SETTLE_TIMEOUT, time.monotonic()
        while (
            left := min(until, self._changed + QUIET_TIME + bool(self._open) * SETTLE_TIMEOUT) - time.monotonic()
        ) > 0:
            browser.listen(left)
        size = browser.call("Page.getLayoutMetrics", self._session)["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": min(max(size["height"], HEIGHT), MAX_HEIGHT), "scale": 1}
        screenshot = browser.call("Page.captureScreenshot", self._session, clip=clip, captureBeyondViewport=True)
        if screenshot.get("data"):
            self._bridge.send(event="display", block=self._bridge.block, data={"image/png": screenshot["data"]})
        browser.on_event = lambda method, params: None
        browser.call("Target.disposeBrowserContext", browserContextId=context)

    def event(self, method: str, given: Frame) -> None:
        match method:
            case "Page.loadEventFired":
                self._is_loaded = True
            case "Runtime.consoleAPICalled":
                is_bad = given["type"] in ("error", "warning", "assert", "trace")
                self._say("stderr" if is_bad else "stdout", formatted(given["args"]).rstrip("\n") + "\n")
            case "Runtime.exceptionThrown":
                self.failed = True
                self._say("stderr", self._error(given["exceptionDetails"]))
            case "Fetch.requestPaused":
                self._answer(given["requestId"], given["request"]["url"])
            case "Page.javascriptDialogOpening":
                self._say("stdout", f"{given['type']}: {given['message']}\n")
                self.browser.send("Page.handleJavaScriptDialog", self._session, accept=True)
            case "Network.requestWillBeSent":
                self._open.add(given["requestId"])
            case "Network.loadingFinished" | "Network.loadingFailed":
                self._open.discard(given["requestId"])
        if method.startswith(("Network", "Page")):
            self._changed = time.monotonic()

    def _say(self, name: str, text: str) -> None:
        """Buffer output until other events follow: a page may log thousands of lines."""
        if name != self._name:
            self._flush()
        self._name = name
        self._said.append(text)

    def _flush(self) -> None:
        self._bridge.stream(self._name, "".join(self._said))
        self._said.clear()

    def _answer(self, request: str, url: str) -> None:
        parts, why = urlsplit(url), ""  # the reason not to load it
        if parts.scheme == "file":
            path = os.path.realpath(unquote(parts.path))
            is_allowed = any(path == each or path.startswith(each.rstrip("/") + "/") for each in self._allowed)
            why = "is outside the workspace" if not is_allowed else "" if os.path.exists(path) else "does not exist"
        elif parts.scheme not in ("data", "blob", "about") and self._is_offline:
            why = "was not loaded, because offline mode is on"
        if not why:
            self.browser.send("Fetch.continueRequest", self._session, requestId=request)
            return
        self._say("stderr", f"{url} {why}.\n")
        self.browser.send("Fetch.failRequest", self._session, requestId=request, errorReason="BlockedByClient")

    def _error(self, details: Frame) -> str:
        """Describe an uncaught exception, with the block's lines that it comes from."""
        thrown = details.get("exception", {})
        description = str(thrown.get("description") or thrown.get("value") or details["text"])
        message, _, stack = description.partition("\n    at ")
        at = [(name or "the page", int(line) - 1, int(column) - 1) for name, line, column in FRAME.findall(stack)]
        lines = []
        for name, line, column in at or [("the page", details["lineNumber"], details["columnNumber"])]:
            if (place := self._line(line, column)) is not None:
                lines.append(f"    at {name} (line {place[0] + 1}, column {place[1] + 1})\n")
        return f"Uncaught {message}\n{''.join(lines[:MAX_FRAMES])}"


def as_json(text: str) -> str:
    """Convert a shared value to JavaScript; a table becomes a list of rows. Escapes `<`, which could end the script."""
    content = json.loads(text)
    if "table" in content:
        names = [column["name"] for column in content["table"]]
        rows = zip(*(column["values"] for column in content["table"]), strict=True)
        content = {"value": [dict(zip(names, row, strict=True)) for row in rows]}
    return json.dumps(content["value"]).replace("<", "\\u003c")


def complete(source: str, base: str, shared: dict[str, str]) -> str:
    """Add what a page needs to be opened anywhere; its lines keep their numbers."""
    needed = "" if CHARSET.search(source[:4096]) else '<meta charset="utf-8">'
    needed += f'<base href="{base}">' if base and "<base" not in source else ""
    if shared:
        given = "".join(f"globalThis[{json.dumps(name)}]={text};" for name, text in shared.items())
        needed += f"<script>{given}</script>"
    beginning = BEGINNING.match(source)
    at = beginning.end() if beginning else 0
    return source[:at] + needed + source[at:]


def formatted(arguments: list[Frame]) -> str:
    """Format the arguments of `console.log` as text."""
    texts = [shown(argument) for argument in arguments]
    if len(texts) > 1 and arguments[0].get("type") == "string" and PLACES.search(texts[0]):
        rest = texts[1:]
        first = PLACES.sub(
            lambda match: (rest.pop(0) if match[0] != "%c" else rest.pop(0) and "") if rest else "", texts[0]
        )
        texts = [first, *rest]
    return " ".join(texts)


def shown(value: Frame) -> str:
    if "preview" in value:
        preview = value["preview"]
        is_list = preview.get("subtype") == "array"
        parts = [each["value"] if is_list else f"{each['name']}: {each['value']}" for each in preview["properties"]]
        parts += ["..."] if preview.get("overflow") else []
        if value.get("subtype") != "error":
            return f"[{', '.join(parts)}]" if is_list else f"{{{', '.join(parts)}}}"
    if "value" in value and not isinstance(value["value"], str):
        return json.dumps(value["value"])
    return str(value.get("value", value.get("description", value.get("type"))))


main = partial(run_worker, Pages)
