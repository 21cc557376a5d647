"""A real Jupyter kernel, used as a notebook does: cells, their outputs, the input box, an interrupt."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager


class Kernel:
    """Runs cells and returns their outputs."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client = manager, client

    def run(
        self, code: str, answer: Callable[[str], str | None] | None = None, interrupt_at: str = "", timeout: float = 60
    ) -> list[dict[str, Any]]:
        """Run a cell; return its outputs. `answer` fills the input box; output of `interrupt_at` interrupts it."""
        request = self.client.execute(code, allow_stdin=answer is not None)
        outputs: list[dict[str, Any]] = []
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if answer is not None and self.client.stdin_channel.msg_ready():
                asked = self.client.get_stdin_msg(timeout=1)
                if (typed := answer(asked["content"]["prompt"])) is not None:
                    self.client.input(typed)
            try:
                message = self.client.get_iopub_msg(timeout=0.1)
            except queue.Empty:
                continue
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return outputs
            if kind in ("stream", "display_data", "update_display_data", "execute_result", "error"):
                outputs.append({"kind": kind, **content})
                if interrupt_at and interrupt_at in str(content):
                    interrupt_at = ""
                    self.manager.interrupt_kernel()
        raise TimeoutError(f"The cell did not end: {outputs}")


def shown(outputs: list[dict[str, Any]], mime: str) -> list[Any]:
    """Return the displays of a cell in this format, after all updates."""
    places: dict[Any, Any] = {}
    for number, output in enumerate(outputs):
        if mime in output.get("data", {}):
            places[output.get("transient", {}).get("display_id", number)] = output["data"][mime]
    return list(places.values())


def printed(outputs: list[dict[str, Any]]) -> str:
    """Join the printed output of a cell."""
    return "".join(output["text"] for output in outputs if output["kind"] == "stream")


@contextmanager
def kernel(folder: str) -> Iterator[Kernel]:
    """Start a kernel in this Python, in a folder."""
    manager: Any = KernelManager()
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="test",
        language="python",
    )
    manager.start_kernel(cwd=folder)
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
