"""The worker of a language that is a Jupyter kernel: it speaks frames with the host, and Jupyter's protocol with the
kernel, over sockets in the runtime's own folder."""

from __future__ import annotations

import os
import queue
import time
from functools import partial
from pathlib import Path
from typing import Any

from interpreter.languages.bridge import Backend, Bridge, adopt, run_worker
from interpreter.runtimes.sharing import KERNEL_FORMS, SHARE_MIME, error_text, input_value, kernel_setup, kernel_takes

POLL_INTERVAL = 0.01  # seconds
START_TIMEOUT = 60.0  # seconds
REPLY_TIMEOUT = 0.3  # seconds to wait for the reply after an interrupted block's last message


class Kernel(Backend):
    """A kernel, started for the first block, and the messages of the block that it runs."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge)
        self._manager: Any = None
        self._client: Any = None
        self._request = self._language = ""
        self._must_interrupt = self._shown_all = False
        self._reply: dict[str, Any] | None = None
        self._idle_since = 0.0

    def start(self) -> None:
        """Do nothing yet: the kernel starts with the first block, whose file shows the runtime's folder."""

    def run(self, frame: dict[str, Any], code: Path) -> None:
        adopt(frame)
        if self._manager is None:
            try:
                from jupyter_client.manager import KernelManager

                self._manager = KernelManager(kernel_name=self.bridge.config["kernel"], transport="ipc")
                self._manager.ip = str(code.with_name("kernel"))
                self._manager.connection_file = str(code.with_name("kernel.json"))
                self._manager.start_kernel()
                self._client = self._manager.blocking_client()
                self._client.start_channels()
                self._client.wait_for_ready(START_TIMEOUT)
                self._language = self._manager.kernel_spec.language.lower()
                if self._language in KERNEL_FORMS:
                    self._client.execute(kernel_setup(self._language, frame.get("max_shared", 0)), silent=True)
            except Exception as error:  # noqa: BLE001 - a kernel can fail to start in any way
                self.bridge.stream("stderr", f"The kernel could not start: {error}\n")
                os._exit(1)
            self.bridge.send(event="ready")
        self._must_interrupt, self._shown_all, self._reply = self.bridge.interrupted, False, None
        if "shared" in frame:
            self._client.execute(kernel_takes(self._language, frame["shared"], frame["max_shared"]), silent=True)
        self._request = self._client.execute(frame["code"], store_history=True, allow_stdin=True, stop_on_error=False)
        self.bridge.idle_after = POLL_INTERVAL

    def interrupt(self) -> None:
        self._must_interrupt = True  # the signal handler may run at any point, so `idle` sends it

    def children_changed(self) -> None:
        self.idle()

    def answer(self, text: str | None) -> None:
        self._client.input(input_value(text, self._language))

    def idle(self) -> None:
        if self._manager is None or self.bridge.block is None:
            return
        if self._must_interrupt:
            self._must_interrupt = False
            self._manager.interrupt_kernel()
        while not self._shown_all and (message := self._next(self._client.get_iopub_msg)) is not None:
            self._show(message["msg_type"], message["content"])
        if (asked := self._next(self._client.get_stdin_msg)) is not None:
            prompt, password = asked["content"]["prompt"], bool(asked["content"].get("password"))
            self.bridge.send(event="input_request", block=self.bridge.block, prompt=prompt, password=password)
        self._reply = self._reply or self._next(self._client.get_shell_msg)
        is_late = self._shown_all and self.bridge.interrupted and time.monotonic() > self._idle_since + REPLY_TIMEOUT
        if self._shown_all and self._reply is not None:
            self._end(self._reply["content"])
        elif is_late:  # an interrupt inside ipykernel's own code only loses the reply
            self._end({"status": "error"})
        elif not self._manager.is_alive():
            while (message := self._next(self._client.get_iopub_msg)) is not None:
                self._show(message["msg_type"], message["content"])
            os._exit(1)

    def _next(self, get: Any) -> dict[str, Any] | None:
        """Return the next message about this block, dropping others; None if there is none yet."""
        while True:
            try:
                message: dict[str, Any] = get(timeout=0)
            except queue.Empty:
                return None
            if message["parent_header"].get("msg_id") == self._request:
                return message

    def _show(self, kind: str, content: dict[str, Any]) -> None:
        match kind:
            case "stream":
                self.bridge.stream("stderr" if content["name"] == "stderr" else "stdout", content["text"])
            case "display_data" | "execute_result":
                if SHARE_MIME in content["data"]:
                    name, _, value = content["data"][SHARE_MIME].partition(" ")
                    self.bridge.send(event="share", block=self.bridge.block, name=name, data=value)
                else:
                    self.bridge.send(event="display", block=self.bridge.block, data=content["data"])
            case "error":
                self.bridge.stream("stderr", error_text(content))
            case "status":
                self._shown_all, self._idle_since = content["execution_state"] == "idle", time.monotonic()

    def _end(self, reply: dict[str, Any]) -> None:
        self.bridge.idle_after = None
        failed = reply["status"] != "ok"
        stopped = failed and self.bridge.interrupted
        self.bridge.done("interrupted" if stopped else "error" if failed else "ok", 130 if stopped else int(failed))


main = partial(run_worker, Kernel)
