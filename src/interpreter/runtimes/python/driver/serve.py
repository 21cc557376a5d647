"""The walk of a block through a Python worker: read its frame, take its pipes, run it, say how it ended."""

from __future__ import annotations

import builtins
import gc
import os
import sys
import types

from .channel import Channel, Report
from .computer import install
from .displays import Figures
from .execution import ActiveLines, EventLoop, formatted, outcome
from .imports import ImportWatch
from .interrupts import Interrupts
from .snapshots import Snapshots
from .streams import Input, Output, make_getpass, make_input, plain_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import TextIOWrapper
    from typing import Any, Dict, List, Optional, Set

    from .channel import Frame
    from .snapshots import Origin
    from .view import View


ENGINE = "INTERPRETER_PYTHON_ENGINE"  # "bare": do without IPython even where it is


def serve(data_fd: int, origin: Origin) -> int:
    """Run blocks until the host says that it is enough, or is gone."""
    gc.disable()  # nothing that start-up makes is garbage
    worker = Worker(data_fd, origin)
    gc.enable()
    gc.freeze()
    sys.path.insert(0, "")  # not before we have our own imports
    worker.say_ready()
    while True:
        frame = worker.channel.receive()
        if frame is None or frame.get("op") == "close":
            return 0
        if frame.get("op") == "run":
            worker.run(frame)
        elif frame.get("op") in ("inspect", "complete"):
            worker.answer(frame)
        elif frame.get("op") == "snapshot":
            worker.snapshot(frame)
        elif frame.get("op") in ("pack", "unpack"):
            worker.carry(frame)
        elif frame.get("op") == "leave_view":
            worker.leave_view(frame)


class Worker:
    """A session's process: its streams, its namespace and the engine that runs code in it."""

    _stdout: TextIOWrapper

    def __init__(self, data_fd: int, origin: Origin) -> None:
        self.interrupts = Interrupts()
        self.interrupts.install()
        self.channel = Channel(data_fd, self.interrupts)
        self.report = Report(self.channel)
        self._main = sys.modules["__main__"] = types.ModuleType("__main__")
        self._main.__dict__["__builtins__"] = builtins
        self._take_streams()
        self._watch = ImportWatch()
        self._figures = Figures(self.report.display)
        self._figures.choose_backend(self._watch)
        self._lines = ActiveLines(self.report.active_line)
        self._loop = EventLoop(self.interrupts)
        self._snapshots = Snapshots(origin)
        self._view: Optional[View] = None  # of the file system, while a block is tried out
        self._engine = self._make_engine()
        self._watch.on_import("getpass", self._take_getpass)
        install(self.report.call)
        os.register_at_fork(before=self._flush, after_in_child=self._leave)

    def say_ready(self, **more: Any) -> None:
        version = "%d.%d.%d" % sys.version_info[:3]
        ready = {"event": "ready", "language": "python", "version": version, "engine": self._engine.name}
        self.channel.send({**ready, **more})

    def run(self, frame: Frame) -> None:
        """Run one block; before it, a snapshot is taken, and in that nothing runs when it goes on."""
        self.interrupts.begin()
        pipes = self.channel.take_descriptors(2)
        if frame.get("snapshot") and self._take_snapshot(pipes):
            self.interrupts.end()
            return
        error: Optional[BaseException] = None
        try:
            try:
                self.report.begin(int(frame["block"]), pipes)
                self._prepare(frame)
                error = self._engine.run(str(frame["code"]), bool(frame.get("colors")))
                error = self._show_figures() or error
            finally:
                self.interrupts.end()
        except BaseException as failure:  # noqa: BLE001 -- a second interrupt, or a flaw of the engine: state is kept
            self.interrupts.end()  # it may have struck in the first end()
            error = failure
            self._stderr.write(formatted(failure))
        status, exit_code = outcome(error)
        denied = {"denied": self._view.denied_in(error)} if self._view is not None else {}
        self._flush_everything()
        if self.report.forked:
            os._exit(exit_code)
        threads = self.report.mark_threads()
        self._choose_stdout(threads)
        told = {**denied, **where(), **causes(error)}
        self.report.end({"status": status, "exit_code": exit_code, "threads": threads, **told})

    def answer(self, frame: Frame) -> None:
        """Answer a question between blocks; an interrupt ends one that takes too long."""
        from . import inspection as questions

        found: Frame = {}
        self.interrupts.begin()
        try:
            try:
                with self.interrupts.user_code:
                    found = questions.answer(frame, self._main.__dict__, self._engine.hidden, self._figures.png)
            finally:
                self.interrupts.end()
        except BaseException as failure:  # noqa: BLE001 -- whatever a user's __repr__ raises
            found = {"failed": "%s: %s" % (type(failure).__name__, failure)}
        self._flush_everything()  # what it printed is nobody's output
        self.channel.send({"event": "answer", "query": frame.get("query"), **found})

    # -- snapshots -------------------------------------------------------------------------------------------

    def snapshot(self, frame: Frame) -> None:
        """Take one between blocks, if a line for it came along; who asks waits for those taken before, too."""
        if self._take_snapshot([]):
            return
        if "query" in frame:
            self.channel.send({"event": "answer", "query": frame["query"]})
        elif not self.channel.is_waited_for():
            self._engine.warm()

    def _take_snapshot(self, pipes: List[int]) -> bool:
        """Whether this is a snapshot, which goes on now."""
        line = self.channel.take_descriptors(1)
        if not line:
            return False
        with self.interrupts:  # one that comes now is for the block
            woken = self._snapshots.take(line[0], {0, 1, 2, self.channel.fd, *pipes, *self._loop.descriptors()})
        if woken is None:
            return False
        for pipe in pipes:
            os.close(pipe)
        self.channel.renew(woken.data)
        for target, fd in enumerate(woken.streams):
            os.dup2(fd, target)
            os.close(fd)
        self._loop.renew()
        if woken.entrance is not None:
            self._enter_view(woken.entrance)
        self.say_ready(lost=woken.lost, unknown_threads=woken.unknown_threads)
        return True

    def _enter_view(self, entrance: int) -> None:
        from . import view

        self._view = view.enter(entrance, {0, 1, 2, self.channel.fd, *self._loop.descriptors()})
        if self._view is None:
            os._exit(1)

    def leave_view(self, frame: Frame) -> None:
        """The block that was tried out is to stay: be in the real file system."""
        lost: List[str] = []
        if self._view is not None:
            self._flush_everything()
            view, self._view = self._view, None
            try:
                lost = view.leave()
            except OSError:
                os._exit(1)  # better none than one whose files are nobody's; the host goes on with the other
        self.channel.send({"event": "answer", "query": frame.get("query"), "lost": lost})

    def carry(self, frame: Frame) -> None:
        """Put the variables into a file, or take them from one: where a snapshot cannot go on by itself."""
        from . import pickling as carrying

        namespace, path = self._main.__dict__, str(frame["path"])
        try:
            if frame["op"] == "pack":
                lost = carrying.pack(namespace, self._engine.hidden, path)
            else:
                lost = carrying.unpack(namespace, path)
        except Exception as error:  # noqa: BLE001 -- whatever a user's __reduce__ or __setstate__ raises
            lost = ["all variables (%s: %s)" % (type(error).__name__, error)]
        self.channel.send({"event": "answer", "query": frame.get("query"), "lost": lost})

    # -- around a block --------------------------------------------------------------------------------------

    def _prepare(self, frame: Frame) -> None:
        self._figures.begin()
        self._loop.interrupted = False
        self._lines.enabled = bool(frame.get("active_lines", True))
        if self._stdout.closed:
            self._stdout = sys.__stdout__ = plain_output("stdout", 1)  # type: ignore[misc]
        for stream, ours in (("stdout", self._stdout), ("stderr", self._stderr), ("stdin", self._stdin)):
            if getattr(getattr(sys, stream), "closed", True):
                setattr(sys, stream, ours)
        self._choose_stdout(self.report.mark_threads())
        for name, value in (frame.get("env") or {}).items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if frame.get("cwd"):
            try:
                os.chdir(frame["cwd"])
            except OSError as error:
                self.report.stream("stderr", "The working directory stays as it was: %s\n" % error)
        if frame.get("skills"):
            from .computer import have

            have(self.report.call, frame["skills"])

    def _show_figures(self) -> Optional[BaseException]:
        try:
            with self.interrupts.user_code:
                self._figures.show_open()
        except Exception as error:  # noqa: BLE001 -- drawing runs the user's code
            self._engine.tell(error)
            return error
        return None

    def _flush_everything(self) -> None:
        flush(self._stdout)
        self._threaded.flush_everything()
        self._stderr.flush_everything()
        if "ctypes" in sys.modules:
            flush_c_streams(sys.modules["ctypes"])

    # -- start-up --------------------------------------------------------------------------------------------

    def _take_streams(self) -> None:
        self._stderr = Output("stderr", 2, self._say_error)
        self._threaded = Output("stdout", 1, lambda text: self.report.stream("stdout", text))
        self._stdin = Input(self.report.ask)
        self._stdout = plain_output("stdout", 1)
        self.report.flush = self._flush
        sys.stdout = sys.__stdout__ = self._stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._stderr  # type: ignore[assignment, misc]
        sys.stdin = sys.__stdin__ = self._stdin  # type: ignore[assignment, misc]
        builtins.input = make_input(self.report.ask)

    def _say_error(self, text: str) -> None:
        flush(self._stdout)
        self.report.stream("stderr", text)

    def _choose_stdout(self, threads: bool) -> None:
        """Where threads of an earlier block may still print, each line must say whose it is."""
        if sys.stdout is self._stdout or sys.stdout is self._threaded:
            sys.stdout = self._threaded if threads else self._stdout

    def _take_getpass(self, module: Any) -> None:
        module.getpass = make_getpass(self.report.ask)

    def _make_engine(self) -> Any:
        lines, loop = self._lines, self._loop
        wanted = os.environ.pop(ENGINE, "ipython")
        if wanted != "bare":
            try:
                from .ipython import IPythonEngine
            except ImportError:
                pass  # this Python has none, or one that is too old
            else:
                return IPythonEngine(self._main, self.report, lines, loop, self._figures, self.interrupts.user_code)
        from .bare import Bare

        namespace, user_code = self._main.__dict__, self.interrupts.user_code
        engine = Bare(namespace, self.report, lines, loop, self._figures, user_code)
        builtins.display = engine.display  # type: ignore[attr-defined]
        return engine

    # -- forks of the user's code ----------------------------------------------------------------------------

    def _flush(self) -> None:
        if self._snapshots.forking:
            return
        for stream in (self._stdout, self._threaded, self._stderr):
            flush(stream)

    def _leave(self) -> None:
        """In a child of the user's making: it writes to its descriptors and has no line to the host."""
        if self._snapshots.forking:
            return
        self.report.leave()
        self.interrupts.leave()
        self._choose_stdout(threads=False)


def flush(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError, RuntimeError):
        pass  # closed by the user's code, or in the middle of a write that a signal handler interrupted


def where() -> Frame:
    try:
        return {"cwd": os.getcwd()}
    except OSError:
        return {}  # somebody removed it


def flush_c_streams(ctypes: Any) -> None:
    """What C code has printed into its own buffers belongs to this block."""
    try:
        ctypes.CDLL(None).fflush(None)
    except (OSError, AttributeError):
        pass  # no C library to ask


MOST = 8


def causes(error: Optional[BaseException]) -> Dict[str, Any]:
    """The refusals among an error and those that led to it."""
    found: List[Dict[str, Any]] = []
    todo: List[Any] = [error]
    seen: Set[int] = set()
    while todo and len(seen) < 64:
        current = todo.pop(0)
        if not isinstance(current, BaseException) or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, OSError) and isinstance(current.errno, int):
            found += [refusal(current, path) for path in paths(current)]
        todo += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
        todo += [current.__dict__.get("reason")]  # of a URLError
    return {"errors": found[:MOST]} if found else {}


def refusal(error: OSError, path: str) -> Dict[str, Any]:
    return {"number": error.errno, "path": path, "kind": type(error).__name__}


def paths(error: OSError) -> List[str]:
    names = [name for name in (error.filename, error.filename2) if isinstance(name, (str, bytes, os.PathLike))]
    return [os.path.abspath(os.fsdecode(name)) for name in names] or [""]
