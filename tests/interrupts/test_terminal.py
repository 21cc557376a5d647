"""The terminal's Ctrl-C: it cancels inside the turn, and the second one raises between two chunks."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from interpreter.frontends.interrupts import TurnInterrupts
from interpreter.sigint import call_user_code


def press() -> None:
    signal.raise_signal(signal.SIGINT)


def test_two_presses_inside_the_turn_raise_after_the_chunk() -> None:
    cancelled: list[int] = []
    steps: list[str] = []

    def chunks() -> Iterator[int]:
        press()
        press()
        steps.append("after both")
        yield 1
        steps.append("not reached")

    interrupts = TurnInterrupts(lambda: cancelled.append(1), lambda: None)
    with interrupts.taken(), pytest.raises(KeyboardInterrupt):
        list(interrupts.passing(chunks()))
    assert steps == ["after both"] and len(cancelled) == 2


def test_one_press_only_cancels() -> None:
    cancelled: list[int] = []

    def chunks() -> Iterator[int]:
        yield 1
        press()
        yield 2

    interrupts = TurnInterrupts(lambda: cancelled.append(1), lambda: None)
    with interrupts.taken():
        assert list(interrupts.passing(chunks())) == [1, 2]
    assert cancelled == [1] and interrupts.count == 1


def test_a_second_press_interrupts_user_code() -> None:
    def chunks() -> Iterator[int]:
        press()
        yield 1

    def user_code() -> Iterator[int]:
        call_user_code(press)
        yield 1

    interrupts = TurnInterrupts(lambda: None, lambda: None)
    with interrupts.taken():
        list(interrupts.passing(chunks()))
        interrupts.interrupted = False  # as if the turn went on
        with pytest.raises(KeyboardInterrupt):
            list(interrupts.passing(user_code()))


def test_ctrl_c_answers_an_open_question() -> None:
    interrupts = TurnInterrupts(lambda: None, lambda: None)
    with interrupts.taken(), interrupts.state("asking"), pytest.raises(KeyboardInterrupt):
        press()
    assert interrupts.count == 0
