"""No exception in the consumer loses or repeats an event of a block, and the last event is sticky."""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from interpreter.runtimes import block as module
from interpreter.runtimes.block import WAITING_LIMIT, Clock, RunningBlock, Spool
from interpreter.runtimes.protocol import Frame
from own_process import alone
from sampling import some

DONE: Frame = {"event": "done"}


@pytest.fixture
def block(tmp_path: Path) -> Iterator[RunningBlock]:
    made = RunningBlock(1, "", Spool(lambda: tmp_path))
    yield made
    made.spool.close()


def stream(text: str) -> Frame:
    return {"event": "stream", "name": "stdout", "text": text}


class Strike:
    """Raises KeyboardInterrupt before the nth bytecode that runs in the methods of RunningBlock, after `arm(n)`."""

    left = 0

    def __enter__(self) -> Strike:
        return self

    def arm(self, number: int) -> None:
        self.left = number
        sys.settrace(self._called)  # again, because an exception in a trace function removes it

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != module.__file__ or not frame.f_code.co_qualname.startswith("RunningBlock."):
            return None
        frame.f_trace_opcodes = True
        return self._opcode

    def _opcode(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        self.left -= event == "opcode"
        if self.left == 0 and event == "opcode":
            raise KeyboardInterrupt
        return self._opcode


def consumed(block: RunningBlock) -> list[Frame]:
    """All events up to the last one, read by a consumer that carries on after each interrupt."""
    found: list[Frame] = []
    while True:
        try:
            event = block.peek(30)
        except KeyboardInterrupt:
            continue
        if event is block.last:
            return found
        found.append(event)
        try:
            block.advance(event)
        except KeyboardInterrupt:
            block.advance(event)


def test_an_event_stays_until_it_has_been_handled(block: RunningBlock) -> None:
    first, second = stream("1"), stream("2")
    block.put(first)
    block.put(second)
    assert block.peek() is first and block.peek() is first
    block.advance(first)
    block.advance(first)  # idempotent
    assert block.peek() is second


def test_the_last_event_is_sticky(block: RunningBlock) -> None:
    block.put(stream("1"))
    block.end(DONE)
    block.end({"event": "exited"})
    block.put(stream("late"))
    assert [event["text"] for event in consumed(block)] == ["1"]
    for _ in range(3):
        assert block.peek() is DONE
        block.advance(DONE)
    assert block.last is DONE and block.spool.read() == "1late"


def test_on_end_is_called_once(block: RunningBlock) -> None:
    callers: list[str] = []
    block.on_end = lambda: callers.append(threading.current_thread().name)
    enders = [threading.Thread(target=block.end, args=[{"event": "done"}]) for _ in range(8)]
    for ender in enders:
        ender.start()
    for ender in enders:
        ender.join()
    assert len(callers) == 1 and block.ended.is_set()


def test_peek_times_out(block: RunningBlock) -> None:
    with pytest.raises(queue.Empty):
        block.peek(0.01)


@alone
def test_an_interrupt_before_any_bytecode_loses_and_repeats_nothing(tmp_path: Path) -> None:
    number = 0
    with Strike() as strike:
        while strike.left <= 0:
            number += 1
            block = RunningBlock(1, "", Spool(lambda: tmp_path))
            frames = [stream(str(count)) for count in range(4)]
            for frame in frames:
                block.put(frame)
            block.end(DONE)
            strike.arm(number)
            assert consumed(block) == frames
            block.spool.close()
    assert number > 100


@pytest.mark.full
@pytest.mark.parametrize("seed", some(1, range(2)))
@alone
def test_interrupts_while_the_reader_waits_for_room(block: RunningBlock, seed: int) -> None:
    frames = [stream(f"{count}".rjust(64 * 1024)) for count in range(200)]  # more than fits

    def put() -> None:
        for frame in frames:
            block.put(frame)
        block.end(DONE)

    reader = threading.Thread(target=put)
    reader.start()
    found: list[Frame] = []
    gaps = random.Random(seed)
    with Strike() as strike:
        while True:
            if strike.left <= 0:
                strike.arm(gaps.randint(1, 60))
            try:
                event = block.peek(30)
            except KeyboardInterrupt:
                continue
            if event is block.last:
                break
            found.append(event)
            try:
                block.advance(event)
            except KeyboardInterrupt:
                block.advance(event)
    reader.join(30)
    assert not reader.is_alive()
    assert found == frames


def test_a_slow_consumer_holds_the_program_back(block: RunningBlock) -> None:
    piece = "x" * 256 * 1024
    count = 4 * WAITING_LIMIT // len(piece)
    reader = threading.Thread(target=lambda: [block.put(stream(piece)) for _ in range(count)])
    reader.start()
    reader.join(0.3)
    assert reader.is_alive()
    waiting = sum(len(frame["text"]) for frame, _ in block._events)
    assert waiting <= WAITING_LIMIT + 2 * len(piece)
    for _ in range(count):
        block.advance(block.peek(30))
    reader.join(30)
    assert not reader.is_alive()


def test_stop_waiting_sends_the_rest_to_the_spool(tmp_path: Path) -> None:
    block = RunningBlock(1, "", Spool(lambda: tmp_path), Clock(None))
    piece = "x" * 256 * 1024
    count = 3 * WAITING_LIMIT // len(piece)
    reader = threading.Thread(target=lambda: [block.put(stream(piece)) for _ in range(count)])
    reader.start()
    reader.join(0.1)
    assert reader.is_alive()
    block.stop_waiting()
    reader.join(30)
    assert not reader.is_alive() and block.spool.length == count * len(piece)
    block.end(DONE)
    assert 0 < len(consumed(block)) < count
    block.spool.close()
