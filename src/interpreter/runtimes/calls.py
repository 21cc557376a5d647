"""Calls that a block's code makes to the tools of the computer, each in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from interpreter.questions import Question
from interpreter.runtimes.block import RunningBlock
from interpreter.runtimes.launch import RuntimeSandbox
from interpreter.runtimes.protocol import Frame
from interpreter.sigint import interrupt_user_code

OVER = "Only a running block can use the computer, and the block that this belongs to has ended."
MAX_CALLS = 500  # per runtime at the same time; each has a thread
# Calls that only list names, or read our own code: allowed at any time, also for a completion.
HARMLESS = ("names", "describe", "code")
REGISTERED = "tools."  # calls of registered tools are put in order where it is known what they are


class Tools(Protocol):
    def answer(self, call: ComputerCall) -> Frame:
        """Answer a call with `value` or `error`, and never raise."""


class DryRunTools:
    """Refuses calls during a dry run: the effects of a tool can't be undone."""

    def answer(self, call: ComputerCall) -> Frame:
        return failure("A dry run can't use the computer, because that can't be undone.", "PermissionError")


class Interrupt:
    """Raises KeyboardInterrupt in the thread that runs a statement, and never outside of one."""

    def __init__(self) -> None:
        self.asked = threading.Event()  # set to end the running block; clear it for a new one
        self._lock = threading.Lock()
        self._thread: int | None = None

    def ask(self) -> None:
        """End what runs, and prevent what has not started; from any thread."""
        with self._lock:
            self.asked.set()
            if self._thread is not None:
                raise_in(self._thread, KeyboardInterrupt)

    @contextmanager
    def may_strike(self) -> Iterator[None]:
        """Let an interrupt strike the code that runs in this thread inside the context."""
        thread = threading.get_ident()
        with self._lock:
            if self.asked.is_set():
                raise KeyboardInterrupt
            self._thread = thread
        try:
            yield
        finally:
            with self._lock:
                self._thread = None
                if self.asked.is_set():
                    raise_in(thread, None)  # cancels it if it has not struck yet


def raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in a thread at its next instruction; None cancels one that was not raised yet."""
    if error is KeyboardInterrupt and interrupt_user_code(thread):
        return
    import ctypes

    exception = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)


class Caller(Protocol):
    number: int
    attached: bool

    def nudge(self, frame: Frame) -> None: ...


class ComputerCall:
    def __init__(
        self,
        frame: Frame,
        block: Caller | None,
        language: str,
        containment: RuntimeSandbox | None = None,
        action: Any = None,
    ) -> None:
        self.path: str = frame["path"]
        self.how: str = frame["how"]
        self.args: list[Any] = frame.get("args") or []
        self.kwargs: dict[str, Any] = frame.get("kwargs") or {}
        self.number: int = frame["call"]
        self.language, self.containment, self.action = language, containment, action
        self.interrupt = Interrupt()
        self.machine = ""  # where the code runs, if not here
        self.over = False  # no one waits for its reply any more
        self.about: Frame = {}  # for the record of the call, once known
        self.on_end: Callable[[], object] | None = None  # stops what the tool waits for, from any thread
        self.block = block.number if block is not None else 0
        self.origin = (block, self.block)  # the same for all calls of one block
        self._block = block
        self._asked: Question | None = None
        self._is_abandoned = False

    def tell(self, event: Frame) -> None:
        """Add something to the output of the block."""
        if self._block is not None and not self.over:
            self._block.nudge({"block": self._block.number, **event})

    def forward_question(self, question: Question) -> bool:
        """Pass a question to the consumer of the block's steps. False if there is none."""
        self._asked = question
        if self._block is None or not self._block.attached or self._is_abandoned:
            return False
        self._block.nudge({"event": "question", "question": question})
        return True

    def abandon(self) -> None:
        """Withdraw its questions, present and future."""
        self._is_abandoned = True
        if self._asked is not None:
            self._asked.withdraw()

    def end(self) -> None:
        """Abandon the call, because no one waits for its reply any more; from any thread."""
        if self.about:
            self.tell({"event": "called", "call": {**self.about, "outcome": "interrupted"}})
        self.over = True
        self.abandon()
        self.interrupt.ask()
        if self.on_end is not None:
            self.on_end()


class Calls:
    """The calls of one runtime, whose driver gets the replies through `send`."""

    def __init__(self, language: str, containment: RuntimeSandbox | None, send: Callable[[Frame], None]) -> None:
        self.language, self._send = language, send
        self.containment = containment  # the sandbox that the runtime was started in, even if it has changed since
        self.tools: Tools | None = None
        self.action: Any = None  # the session's action that they belong to
        self._running: dict[int, ComputerCall] = {}
        self._turns: dict[tuple[int, str], threading.Lock] = {}  # by block and tool
        self._lock = threading.Lock()

    # -- for the reader thread -----------------------------------------------------------------------------------

    def made(self, frame: Frame, block: RunningBlock | None) -> None:
        is_over = block is None or block.finished or block.clock.stage in ("swept", "pressed", "killed")
        call = ComputerCall(frame, block, self.language, self.containment, self.action)
        if self.tools is None or (is_over and call.how not in HARMLESS):
            self._reply(call, failure(OVER if self.tools else "There is no computer to call."))
            return
        with self._lock:
            if is_free := call.number not in self._running and len(self._running) < MAX_CALLS:
                self._running[call.number] = call
        if not is_free:
            self._reply(call, failure("Too many calls at the same time. Wait for some of them to finish."))
            return
        name = f"{self.language} calls {call.path}"
        threading.Thread(target=self._run, args=(call, self.tools), name=name, daemon=True).start()

    def called_off(self, number: int) -> None:
        with self._lock:
            call = self._running.pop(number, None)
        if call is not None:
            call.end()

    def block_over(self, block: RunningBlock) -> None:
        """End a block's calls with it; its threads that wait for a reply get one."""
        with self._lock:
            ended = [call for call in self._running.values() if call.block == block.number]
            for call in ended:
                del self._running[call.number]
            self._turns = {key: turn for key, turn in self._turns.items() if key[0] != block.number}
        self.action = None  # so that our thread does not keep an unused session alive
        for call in ended:
            call.end()
            self._reply(call, failure(OVER))

    # -- for other threads ---------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Withdraw all questions: the block was interrupted or has lost its consumer."""
        with self._lock:
            for call in self._running.values():
                call.abandon()

    def _run(self, call: ComputerCall, tools: Tools) -> None:
        turn: AbstractContextManager[object] = nullcontext()
        # Within a block, calls of one tool run one after the other.
        if call.how not in HARMLESS and not call.path.startswith(REGISTERED):
            with self._lock:
                turn = self._turns.setdefault((call.block, call.path.partition(".")[0]), threading.Lock())
        try:
            with turn:
                reply = tools.answer(call)
        except KeyboardInterrupt:
            reply = failure("The call was interrupted.")
        except Exception as error:  # noqa: BLE001 - a bug in the answering: the runtime must not wait for ever
            reply = failure(f"{type(error).__name__}: {error}")
        with self._lock:  # a restored runtime reuses the numbers of later calls
            waited_for = self._running.get(call.number) is call
            if waited_for:
                del self._running[call.number]
        if waited_for:
            self._reply(call, reply)

    def _reply(self, call: ComputerCall, reply: Frame) -> None:
        self._send({"op": "reply", "call": call.number, **reply})


def failure(message: str, kind: str = "Exception") -> Frame:
    """Make a reply that raises an exception in the code that made the call."""
    return {"error": {"type": kind, "words": message}}
