"""Ctrl-C at the terminal: the first cancels the turn, and the second raises between two chunks."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from interpreter.frontends.interrupts import TurnInterrupts
from interpreter.frontends.terminal.tty import Tty
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
        interrupts.interrupted = False  # as if the turn continued
        with pytest.raises(KeyboardInterrupt):
            list(interrupts.passing(user_code()))


def test_ctrl_c_answers_an_open_question() -> None:
    interrupts = TurnInterrupts(lambda: None, lambda: None)
    with interrupts.taken(), interrupts.state("asking"), pytest.raises(KeyboardInterrupt):
        press()
    assert interrupts.count == 0


def test_ctrl_c_just_before_reading_a_line_interrupts_the_read() -> None:
    reading, writing = os.pipe()
    was_typed = threading.Event()

    def type_line() -> None:
        was_typed.set()
        os.write(writing, b"\n")

    # The main thread gets no signal, as if it had come just before the read.
    presser = threading.Timer(0.2, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT))
    typist = threading.Timer(30, type_line)
    with open(reading, encoding="utf-8") as stdin, open(writing, "wb"):
        presser.start()
        typist.start()
        with pytest.raises(KeyboardInterrupt):
            Tty(stdin).read_line()
        typist.cancel()
    assert not was_typed.is_set()
