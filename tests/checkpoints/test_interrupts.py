"""Ctrl-C while changes are recorded: nothing that a block did is lost, and the next block works."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import interpreter
from checkpoints.conftest import MakeSession
from checkpoints.scripted_session import ScriptedSession
from checkpoints.trees import shape
from interpreter import BaseLanguage
from interpreter.messages import Chunk
from own_process import alone

PACKAGE = Path(interpreter.__file__).parent
RECORDING = tuple(str(PACKAGE / part) for part in ("workspace", "session/checkpoints", "session/journal"))


class Writer(BaseLanguage):
    """A language whose code is `name=content`; it writes that file."""

    name = "writer"
    root = Path()

    def run(self, code: str) -> Iterator[Chunk]:
        path, _, content = code.partition("=")
        (self.root / path).write_text(content)
        yield {"type": "console", "format": "output", "content": "written"}


class CtrlCAfter:
    """Presses Ctrl-C after this many lines of the recording code."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __enter__(self) -> CtrlCAfter:
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


def start(make_session: MakeSession) -> ScriptedSession:
    session = make_session()
    for name in ("a", "b", "c"):
        session.write(name, "0")
    Writer.root = session.root
    session.interpreter.computer.languages = [Writer]
    session.turn("hello", ("writer", "a=1"))
    return session


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=pytest.mark.full)])
@alone
def test_ctrl_c_at_any_line_around_a_block_loses_nothing(make_session: MakeSession, stride: int) -> None:
    session = start(make_session)
    before = shape(session.root)
    number, pressed = 1, 0
    while True:
        try:
            with CtrlCAfter(number) as pressing:
                session.run_block(("writer", f"b={number}"))
        except KeyboardInterrupt:
            pressed += 1
        session.run_block(("writer", f"c={number}"))
        assert session.read("c") == str(number)
        timeline = session.interpreter.timeline
        timeline.go(timeline.plan(2))
        assert shape(session.root) == before
        if pressing.left > 0:
            break
        number += stride
    assert pressed > 100 / stride


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=pytest.mark.full)])
@alone
def test_ctrl_c_at_any_line_of_an_undo_loses_nothing(make_session: MakeSession, stride: int) -> None:
    session = start(make_session)
    before, messages = shape(session.root), list(session.interpreter.messages)
    session.turn("more", ("writer", "b=1"), ("writer", "new=1"), ("writer", "c=1"))
    after, whole = shape(session.root), list(session.interpreter.messages)
    number, pressed = 1, 0
    while True:
        try:
            with CtrlCAfter(number) as pressing:
                session.interpreter.undo()
        except KeyboardInterrupt:
            pressed += 1
        timeline = session.interpreter.timeline
        timeline.go(timeline.plan(2))  # finish the undo
        assert shape(session.root) == before and session.interpreter.messages == messages
        session.interpreter.redo()
        assert shape(session.root) == after and session.interpreter.messages == whole
        if pressing.left > 0:
            break
        number += stride
    assert pressed > 100 / stride


@pytest.mark.full
@alone
def test_an_interrupted_record_can_be_reopened(make_session: MakeSession) -> None:
    session = start(make_session)
    for number in range(1, 400, 29):
        try:
            with CtrlCAfter(number):
                session.run_block(("writer", f"b={number}"))
        except KeyboardInterrupt:
            pass
    session.run_block(("writer", "c=1"))
    record = session.interpreter.timeline.files.record()
    assert record is not None
    from interpreter.workspace import FileRecord

    again = FileRecord(session.root, record.folder, exclude=[session.sessions])
    assert again.blocks == record.blocks
    again.undo(again.plan_undo(len(again.blocks)))
    assert [session.read(name) for name in "abc"] == ["0", "0", "0"]
