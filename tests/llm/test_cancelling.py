"""A request to a model can be cancelled at any moment, from any thread."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import threading
from pathlib import Path

import pytest

from interpreter.messages import Chunk
from model_server import Reply, stall, text, tool_call
from scripted_llm import Start, folded
from waiting import until


def test_cancel_from_another_thread_ends_a_blocked_read(asking: Start) -> None:
    model = asking(text("Hello").then(stall()), text("again"))
    received: queue.SimpleQueue[Chunk | None] = queue.SimpleQueue()

    def read() -> None:
        for chunk in model.stream():
            received.put(chunk)
        received.put(None)

    thread = threading.Thread(target=read)
    thread.start()
    assert received.get(timeout=60) == {"type": "message", "content": "Hello"}
    model.llm.cancel()
    assert received.get(timeout=60) is None
    thread.join(60)
    assert model.server.requests[0].disconnected.wait(60)
    assert folded(model.chunks()) == ["again"]


def test_cancel_ends_the_wait_for_a_response(asking: Start) -> None:
    """Before even the headers arrive."""
    reached, never = threading.Event(), threading.Event()

    def slow(body: object) -> Reply:
        reached.set()
        never.wait(60)
        return text("late")

    model = asking(slow, text("again"))
    seen: list[Chunk] = []
    thread = threading.Thread(target=lambda: seen.extend(model.stream()))
    thread.start()
    assert reached.wait(60)
    model.llm.cancel()
    thread.join(60)
    assert not thread.is_alive()
    assert seen == []
    never.set()
    assert folded(model.chunks()) == ["again"]


def test_cancel_ends_the_wait_for_a_connection(asking: Start) -> None:
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # more than its backlog holds, so the next connection gets no answer
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        port = full.getsockname()[1]
        ours = connecting_to(port)
        model = asking(api_base=f"http://127.0.0.1:{port}/v1", connect_timeout=600)
        thread = threading.Thread(target=lambda: list(model.stream()), daemon=True)
        thread.start()
        until(lambda: connecting_to(port) > ours, "the connection on its way")
        model.llm.cancel()
        thread.join(60)
        assert not thread.is_alive()


def connecting_to(port: int) -> int:
    """The number of pending connections to this port."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return sum(row[2].endswith(f":{port:04X}") and row[3] == "02" for row in rows)


def test_cancel_works_on_a_reused_connection(asking: Start) -> None:
    model = asking(text("one"), text("two").then(stall()), text("three"))
    assert folded(model.chunks()) == ["one"]
    chunks = model.stream()
    assert next(chunks)["content"] == "two"
    model.llm.cancel()
    assert list(chunks) == []
    assert folded(model.chunks()) == ["three"]


def test_cancel_releases_text_that_was_held_back(asking: Start) -> None:
    model = asking(text("Hi\n``").then(stall()), supports_functions=False)
    chunks = model.stream()
    said = [next(chunks)]
    model.llm.cancel()
    assert folded(said + list(chunks)) == ["Hi\n``"]


def test_a_cancelled_block_has_no_end_marker(asking: Start) -> None:
    cut = Reply(tool_call("python", "print(1)", 8).deltas[:-1])
    model = asking(cut.then(stall()))
    chunks = model.stream()
    seen = [next(chunks)]
    assert model.server.stalled.wait(60)
    model.llm.cancel()
    assert not any(chunk.get("end") for chunk in seen + list(chunks))


def test_leaving_the_stream_closes_the_connection(asking: Start) -> None:
    model = asking(text("Hello").then(stall()))
    for _ in model.stream():
        break
    assert model.server.requests[0].disconnected.wait(60)


def test_ctrl_c_interrupts_a_blocked_read(asking: Start) -> None:
    model = asking(text("Hello").then(stall()), text("again"))
    chunks = model.stream()
    next(chunks)

    def press() -> None:
        model.server.stalled.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    presser = threading.Thread(target=press)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal may come before the read
        presser.start()
        next(chunks)
    presser.join()
    assert folded(model.chunks()) == ["again"]


def test_cancel_without_a_request_does_nothing(asking: Start) -> None:
    model = asking(text("Hi"))
    model.llm.cancel()
    assert folded(model.chunks()) == ["Hi"]
