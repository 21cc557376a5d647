"""Ctrl-C inside `next()` of a guarded iterator sets a flag, and raises at the end."""

from __future__ import annotations

import dis
import gc
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest

from interpreter import BaseLanguage, OpenInterpreter, sigint
from interpreter.messages import Chunk
from interpreter.sigint import Guarded, Hold, call_user_code, wait_for_abandoned
from own_process import alone


def press() -> None:
    signal.raise_signal(signal.SIGINT)


class Work:
    """An iterator that presses Ctrl-C on itself and ends when cancelled."""

    def __init__(self, presses_at: int) -> None:
        self.cancelled = threading.Event()
        self.closed_in: str | None = None
        self._presses_at = presses_at

    def items(self) -> Iterator[int]:
        try:
            for number in range(100):
                if number == self._presses_at:
                    press()
                    assert self.cancelled.wait(30)
                if self.cancelled.is_set() and number > self._presses_at + 2:
                    return
                yield number
        finally:
            self.closed_in = threading.current_thread().name


def test_the_remaining_items_come_before_one_keyboard_interrupt() -> None:
    work = Work(3)
    items, found = Guarded(work.items(), work.cancelled.set), []
    with pytest.raises(KeyboardInterrupt):
        found.extend(items)
    assert found == [0, 1, 2, 3, 4, 5]
    assert list(items) == []


def test_ctrl_c_just_before_a_system_call_still_ends_it() -> None:
    ours, theirs = socket.socketpair()

    def press_elsewhere() -> None:
        # Python runs the handler in the main thread, which this signal does not wake: as if it had come just before.
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def items() -> Iterator[bytes]:
        yield b"begun"
        yield ours.recv(1)

    with ours, theirs:
        work = Guarded(items(), lambda: ours.shutdown(socket.SHUT_RDWR))
        assert next(work) == b"begun"
        pressing = threading.Thread(target=press_elsewhere)
        pressing.start()
        with pytest.raises(KeyboardInterrupt):
            assert list(work) == [b""]
        pressing.join()


def test_ctrl_c_in_the_consumers_code_raises_there() -> None:
    work = Work(1000)
    items = Guarded(work.items(), work.cancelled.set)
    assert next(items) == 0
    with pytest.raises(KeyboardInterrupt):
        press()
    assert next(items) == 1 and not work.cancelled.is_set()
    items.close()


def test_the_handler_is_installed_only_inside_next() -> None:
    def handlers() -> Iterator[object]:
        while True:
            yield signal.getsignal(signal.SIGINT)

    items = Guarded(handlers(), lambda: None)
    assert next(items) is not signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, mine := lambda number, frame: None)
    try:
        assert next(items) is mine  # a custom handler stays in charge
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    items.close()


def test_other_threads_are_not_guarded() -> None:
    found: list[int] = []
    work = Work(1000)
    thread = threading.Thread(target=lambda: found.extend(Guarded(work.items(), work.cancelled.set)))
    thread.start()
    thread.join()
    assert len(found) == 100


class Strike:
    """Presses Ctrl-C at the nth point in sigint.py where Python handles signals, after `arm(n)`."""

    left = 0

    def __init__(self) -> None:
        self._before: dict[FrameType, str] = {}

    def __enter__(self) -> Strike:
        return self

    def arm(self, number: int) -> None:
        self.left = number
        sys.settrace(self._called)  # again, because an exception in a trace function removes it

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if frame.f_code.co_filename != sigint.__file__:
            return None
        frame.f_trace_opcodes = True
        return self._opcode

    def _opcode(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "opcode":
            before = self._before.get(frame, "")
            self._before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith(("CALL", "RESUME", "JUMP_BACKWARD")):
                self.left -= 1
                if self.left == 0:
                    press()
        return self._opcode


@alone
def test_ctrl_c_at_any_point_of_next_loses_no_item() -> None:
    number = 0
    with Strike() as strike:
        while strike.left <= 0:
            number += 1
            items, found, over = Guarded(iter(range(3)), lambda: None), list[int](), False
            strike.arm(number)
            while not over:
                try:
                    found.append(next(items))
                except KeyboardInterrupt:
                    continue
                except StopIteration:
                    over = True
            assert found == [0, 1, 2]
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert not sigint.interrupted()
    assert number > 20


def test_an_error_after_ctrl_c_becomes_the_cause_of_keyboard_interrupt() -> None:
    def items() -> Iterator[int]:
        press()
        yield 1
        raise ValueError("cut off")

    found = Guarded(items(), lambda: None)
    assert next(found) == 1
    with pytest.raises(KeyboardInterrupt) as raised:
        next(found)
    assert isinstance(raised.value.__cause__, ValueError)


def test_close_raises_keyboard_interrupt_afterwards() -> None:
    def items() -> Iterator[int]:
        try:
            yield 1
        finally:
            press()

    found = Guarded(items(), lambda: None)
    next(found)
    with pytest.raises(KeyboardInterrupt):
        found.close()
    found.close()


def test_a_helper_thread_closes_an_abandoned_iterator() -> None:
    work = Work(1000)
    items = Guarded(work.items(), work.cancelled.set)
    next(items)
    del items
    gc.collect()
    wait_for_abandoned()
    assert work.closed_in not in (None, threading.main_thread().name)


def test_a_late_cancel_does_not_hit_the_next_iteration() -> None:
    cancelled: list[bool] = []

    def pressing() -> Iterator[int]:
        yield 1
        press()

    present = [0]
    for number in range(50):
        present[0] = number
        items = Guarded(pressing(), lambda number=number: cancelled.append(number == present[0]))
        with pytest.raises(KeyboardInterrupt):
            list(items)
    assert all(cancelled)


# -- user code -----------------------------------------------------------------------------------------


def test_user_code_is_interrupted_at_once() -> None:
    def items() -> Iterator[str]:
        try:
            call_user_code(press)
        except KeyboardInterrupt:
            yield "raised"
        press()  # in our own code again
        yield "deferred"

    found = Guarded(items(), lambda: None)
    assert [next(found), next(found)] == ["raised", "deferred"]
    with pytest.raises(KeyboardInterrupt):
        next(found)


def test_user_code_does_not_start_after_ctrl_c() -> None:
    ran: list[int] = []

    def items() -> Iterator[int]:
        press()
        call_user_code(ran.append, 1)
        yield 1

    with pytest.raises(KeyboardInterrupt):
        list(Guarded(items(), lambda: None))
    assert not ran


class Sleepy(BaseLanguage):
    """A language that only a signal can stop."""

    name = "sleepy"

    def run(self, code: str) -> Iterator[Chunk]:
        press = partial(signal.pthread_kill, threading.main_thread().ident or 0, signal.SIGINT)
        threading.Timer(0.1, press).start()
        yield {"type": "console", "format": "output", "content": "begun\n"}
        time.sleep(100)


def test_ctrl_c_interrupts_a_custom_language() -> None:
    interpreter = OpenInterpreter()
    interpreter.computer.languages = [Sleepy]
    with pytest.raises(KeyboardInterrupt):
        interpreter.computer.run("sleepy", "")


def test_hold_works_inside_a_guarded_iterator() -> None:
    def items() -> Iterator[str]:
        hold = Hold()
        with hold:
            press()
            yield "held"
            try:
                hold.let_through()
            except KeyboardInterrupt:
                yield "safe point"

    found = Guarded(items(), lambda: None)
    assert next(found) == "held"
    assert next(found) == "safe point"
    with pytest.raises(KeyboardInterrupt):
        next(found)
    assert not sigint.interrupted()
