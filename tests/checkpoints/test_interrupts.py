"""Ctrl-C at any moment of the record's work: nothing that a block did is lost, and the next block works."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import interpreter
from checkpoints.conftest import Travelling
from checkpoints.traveller import Traveller
from checkpoints.trees import shape
from interpreter import BaseLanguage
from interpreter.messages import Chunk
from own_process import alone

PACKAGE = Path(interpreter.__file__).parent
RECORDING = tuple(str(PACKAGE / part) for part in ("workspace", "session/checkpoints", "session/journal"))


class Writer(BaseLanguage):
    """Writes what its code says: `name=content`."""

    name = "writer"
    root = Path()

    def run(self, code: str) -> Iterator[Chunk]:
        path, _, content = code.partition("=")
        (self.root / path).write_text(content)
        yield {"type": "console", "format": "output", "content": "written"}


class Pressing:
    """Presses Ctrl-C when so many lines of the record have run."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __enter__(self) -> Pressing:
        sys.settrace(self._called)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename.startswith(RECORDING) else None

    def _line(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        self.left -= event == "line"
        if self.left == 0 and event == "line":
            signal.raise_signal(signal.SIGINT)
        return self._line


def start(travelling: Travelling) -> Traveller:
    traveller = travelling()
    for name in ("a", "b", "c"):
        traveller.write(name, "0")
    Writer.root = traveller.root
    traveller.interpreter.computer.languages = [Writer]
    traveller.turn("hello", ("writer", "a=1"))
    return traveller


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.full)])
@alone
def test_ctrl_c_anywhere_around_a_block(travelling: Travelling, stride: int) -> None:
    traveller = start(travelling)
    before = shape(traveller.root)
    number, pressed = 1, 0
    while True:
        try:
            with Pressing(number) as pressing:
                traveller.own(("writer", f"b={number}"))
        except KeyboardInterrupt:
            pressed += 1
        traveller.own(("writer", f"c={number}"))
        assert traveller.read("c") == str(number)
        timeline = traveller.interpreter.timeline
        timeline.go(timeline.plan(2))
        assert shape(traveller.root) == before
        if pressing.left > 0:
            break
        number += stride
    assert pressed > 100 / stride


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.full)])
@alone
def test_ctrl_c_anywhere_in_an_undo(travelling: Travelling, stride: int) -> None:
    traveller = start(travelling)
    before, messages = shape(traveller.root), list(traveller.interpreter.messages)
    traveller.turn("more", ("writer", "b=1"), ("writer", "new=1"), ("writer", "c=1"))
    after, whole = shape(traveller.root), list(traveller.interpreter.messages)
    number, pressed = 1, 0
    while True:
        try:
            with Pressing(number) as pressing:
                traveller.interpreter.undo()
        except KeyboardInterrupt:
            pressed += 1
        timeline = traveller.interpreter.timeline
        timeline.go(timeline.plan(2))  # the rest of it, if there is any
        assert shape(traveller.root) == before and traveller.interpreter.messages == messages
        traveller.interpreter.redo()
        assert shape(traveller.root) == after and traveller.interpreter.messages == whole
        if pressing.left > 0:
            break
        number += stride
    assert pressed > 100 / stride


@pytest.mark.full
@alone
def test_a_record_that_was_interrupted_can_be_read(travelling: Travelling) -> None:
    traveller = start(travelling)
    for number in range(1, 400, 29):
        try:
            with Pressing(number):
                traveller.own(("writer", f"b={number}"))
        except KeyboardInterrupt:
            pass
    traveller.own(("writer", "c=1"))
    record = traveller.interpreter.timeline.files.record()
    assert record is not None
    from interpreter.workspace import FileRecord

    again = FileRecord(traveller.root, record.folder, exclude=[traveller.sessions])
    assert again.blocks == record.blocks
    again.undo(again.plan_undo(len(again.blocks)))
    assert [traveller.read(name) for name in "abc"] == ["0", "0", "0"]
