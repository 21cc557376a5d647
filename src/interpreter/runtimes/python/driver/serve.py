"""The worker of a Python runtime: it reads the host's frames, runs blocks, and answers between them."""

from __future__ import annotations

import _socket
import builtins
import gc
import os
import sys
import time
import types
from io import TextIOWrapper

from .channel import Channel, Report, encoded
from .computer import define_names, define_skills, install
from .descriptors import working_directory
from .displays import Figures, TablePage
from .execution import ActiveLines, EventLoop, formatted, missing_module, outcome, refusals
from .hints import Any, Callable, Frame, Origin
from .imports import ImportWatch, avoid_unix_sockets, use_packages
from .interrupts import Interrupts
from .sharing import Share
from .snapshots import SnapshotTaker
from .streams import Input, Output, make_input, plain_output

ENGINE = "INTERPRETER_PYTHON_ENGINE"  # "bare": don't use IPython even if it is installed
NOT_PRELOADED = "INTERPRETER_NOT_PRELOADED"  # what a warm parent could not import, as in warm.py
REHEARSED = "import os; x = 1", "x += 1; x"
REHEARSALS = 8  # Python optimises a function after so many calls


prepared: list[Worker] = []  # in a warm parent, the worker that others are copied from


def prepare(gather: Callable[[set[int]], None]) -> None:
    """Make a worker in a warm parent whose copies need little more than a connection, and little memory.

    It runs blocks, so its copies share what Python and IPython write to memory the first few times. `gather` gets the
    ids of the code that ran.
    """
    end, host = _socket.socketpair()
    worker = Worker(end.detach(), ("", "", {}, "", []))
    ran: dict[int, types.CodeType] = {}
    sys.setprofile(lambda frame, *_: ran.setdefault(id(frame.f_code), frame.f_code))
    worker.rehearse(host, 1)
    sys.setprofile(None)
    gather(set(ran))
    worker.rehearse(host, REHEARSALS)
    host.close()
    worker.wait_for_copies()
    prepared.append(worker)


def serve(data_fd: int, origin: Origin) -> int:
    """Run blocks until the host closes the connection, or is gone."""
    gc.disable()  # start-up makes no garbage
    environment = origin[4][2] if len(origin[4]) > 2 else ""
    if os.path.isdir(environment):  # not in a container
        # Become the Python of this environment. The supervisor does not, because it loads nothing that code can write.
        sys.prefix = sys.exec_prefix = environment
        sys.executable = os.path.join(environment, "bin", "python")
    missing = os.environ.pop(NOT_PRELOADED, None)
    if prepared:
        worker = prepared[0]
        worker.begin_copy(data_fd, origin)
    else:
        worker = Worker(data_fd, origin)
    if environment:
        use_packages(environment)  # only now, so that what code installs can't break the driver or IPython
    gc.enable()
    gc.freeze()
    sys.path.insert(0, "")  # not before our own imports
    worker.say_ready(not_preloaded=missing)
    operations = {
        "run": worker.run,
        "inspect": worker.answer,
        "complete": worker.answer,
        "snapshot": worker.snapshot,
        "pack": worker.carry,
        "unpack": worker.carry,
        "save": worker.save,
        "leave_view": worker.leave_view,
    }
    while True:
        frame = worker.channel.receive()
        if frame is None or frame.get("op") == "close":
            return 0
        if frame.get("op") in operations:
            operations[frame["op"]](frame)


class Worker:
    """The worker process: its streams, its namespace and the engine that runs code in it."""

    _stdout: TextIOWrapper

    def __init__(self, data_fd: int, origin: Origin) -> None:
        self.interrupts = Interrupts()
        self.interrupts.install()
        self.channel = Channel(data_fd, self.interrupts)
        self.report = Report(self.channel)
        self._main = sys.modules["__main__"] = types.ModuleType("__main__")
        self._main.__dict__["__builtins__"] = builtins
        self._replace_streams()
        watch = ImportWatch()
        self._figures = Figures(self.report.display)
        self._figures.choose_backend(watch)
        self._lines = ActiveLines(self.report.active_line)
        self._loop = EventLoop(self.interrupts)
        self._snapshots = SnapshotTaker(origin, self.interrupts.raise_deferred)
        self._view: Any = None  # the view of the file system during a dry run
        self._engine = self._make_engine()
        getpass = make_input(self.report.ask, "getpass", "Password: ", password=True)
        watch.on_import("getpass", lambda module: setattr(module, "getpass", getpass))
        avoid_unix_sockets(watch)
        install(self.report.call)
        self._share = Share(self._main.__dict__, self.report.share)
        builtins.share = self._share  # type: ignore[attr-defined]
        os.register_at_fork(before=self._flush, after_in_child=self._leave)

    def rehearse(self, host: _socket.socket, times: int) -> None:
        """Run blocks that leave no trace."""
        before = dict(self._main.__dict__)
        for code in REHEARSED * times:
            host.sendall(encoded({"op": "run", "block": 0, "code": code}))
            self.run(self.channel.receive() or {})
        self._engine.forget()
        self.interrupts.expect_block()
        self._main.__dict__.clear()
        self._main.__dict__.update(before)

    def wait_for_copies(self) -> None:
        """Prepare a warm parent's worker for forks that are not the user's."""
        self._engine.warm()
        self._snapshots.forking = True

    def begin_copy(self, data_fd: int, origin: Origin) -> None:
        """Become the worker of a new runtime: this copy has its environment and folder already."""
        self._snapshots.forking, self._snapshots.origin = False, origin
        time.tzset()
        self.interrupts.install()
        self.channel.renew(data_fd)
        if "_dh" in self._main.__dict__:
            self._main._dh[:] = [working_directory()]  # IPython's list of folders

    def say_ready(self, **more: Any) -> None:
        version = "%d.%d.%d" % sys.version_info[:3]
        ready = {"event": "ready", "language": "python", "version": version, "engine": self._engine.name}
        self.channel.send({**ready, **more})

    def run(self, frame: Frame) -> None:
        """Run one block, after taking a snapshot; a snapshot that resumes here runs nothing."""
        self.interrupts.begin()
        pipes = self.channel.take_descriptors(2)
        if frame.get("snapshot") and self._take_snapshot(pipes):
            self.interrupts.end()
            return
        error: BaseException | None = None
        try:
            try:
                self.report.begin(int(frame["block"]), pipes)
                self._prepare(frame)
                error = self._engine.run(str(frame["code"]), bool(frame.get("colors")))
                try:
                    with self.interrupts.user_code:
                        self._figures.show_open(failed=error is not None)
                except Exception as failure:  # noqa: BLE001 -- drawing runs the user's code
                    self._engine.show_error(failure)
                    error = failure
            finally:
                self.interrupts.end()
        except BaseException as failure:  # noqa: BLE001 -- a second interrupt, or a bug of the engine: state is kept
            self.interrupts.end()  # the interrupt may have come during the first end()
            error = failure
            self._stderr.write(formatted(failure))
        status, exit_code = outcome(error)
        done: Frame = {"status": status, "exit_code": exit_code}
        if self._view is not None:
            done["denied"] = self._view.denied_in(error)
        self._flush_everything()
        if self.report.forked:
            os._exit(exit_code)
        done["threads"] = self.report.mark_threads()
        self._choose_stdout(done["threads"])
        details = {"cwd": working_directory(), "errors": refusals(error), "missing": missing_module(error)}
        self.report.end({**done, **{name: value for name, value in details.items() if value}})

    def _prepare(self, frame: Frame) -> None:
        """Set up streams, environment, folder and skills for a block."""
        self._figures.begin()
        self._loop.interrupted = False
        self._lines.enabled = bool(frame.get("active_lines", True))
        TablePage.most_rows = int(frame.get("table_rows", TablePage.most_rows))
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
                self.report.stream("stderr", "The working directory did not change: %s\n" % error)
        self._share.most = int(frame.get("max_shared", 0))
        if frame.get("shared"):
            self._share.take(frame["shared"])
        define_names(self.report.call, frame.get("names") or ())
        if frame.get("skills"):
            define_skills(self.report.call, frame["skills"])

    # -- between blocks --------------------------------------------------------------------------------------

    def answer(self, frame: Frame) -> None:
        """Answer a question about variables; an interrupt ends one that takes too long."""
        from . import inspection

        reply: Frame = {}
        self.interrupts.begin()
        try:
            try:
                with self.interrupts.user_code:
                    reply = inspection.answer(frame, self._main.__dict__, self._engine.hidden, self._figures.png)
            finally:
                self.interrupts.end()
        except KeyboardInterrupt:
            reply = {"failed": "this took too long, and was stopped"}
        except BaseException as failure:  # noqa: BLE001 -- a user's __repr__ may raise anything
            reply = {"failed": "%s: %s" % (type(failure).__name__, failure)}
        self._flush_everything()  # its output belongs to no block
        self._reply(frame, **reply)

    def _reply(self, frame: Frame, **fields: Any) -> None:
        self.channel.send({"event": "answer", "query": frame.get("query"), **fields})

    def snapshot(self, frame: Frame) -> None:
        """Take a snapshot between blocks, if a socket for it came along. A query is answered after it."""
        if self._take_snapshot([]):
            return
        if "query" in frame:
            self._reply(frame)
        elif not prepared and not self.channel.has_input():  # copies of a warm parent save memory instead
            self._engine.warm()

    def _take_snapshot(self, pipes: list[int]) -> bool:
        """Take a snapshot. Returns True in the snapshot, when it resumes."""
        line = self.channel.take_descriptors(1)
        if not line:
            return False
        with self.interrupts:  # an interrupt that comes now is meant for the block
            woken = self._snapshots.take(line[0], {0, 1, 2, self.channel.fd, *pipes, *self._loop.descriptors()})
        if woken is None:
            return False
        for pipe in pipes:
            os.close(pipe)
        (data, *streams), lost, unknown_threads = woken
        self.channel.renew(data)
        for target, fd in enumerate(streams[:3]):
            os.dup2(fd, target)
            os.close(fd)
        self._loop.renew()
        if len(streams) > 3:  # with the entrance to a view, for a dry run
            from .entering import enter_view

            self._view = enter_view(streams[3], {0, 1, 2, self.channel.fd, *self._loop.descriptors()})
            if self._view is None:
                os._exit(1)
        self.say_ready(lost=lost, unknown_threads=unknown_threads)
        return True

    def leave_view(self, frame: Frame) -> None:
        """Return to the real file system after a dry run that the user keeps."""
        lost: list[str] = []
        if self._view is not None:
            self._flush_everything()
            view, self._view = self._view, None
            try:
                lost = view.leave()
            except OSError:
                os._exit(1)  # its files would not be real; the host continues with the other worker
        self._reply(frame, lost=lost)

    def carry(self, frame: Frame) -> None:
        """Write the variables to a file, or read them from one, when a snapshot cannot resume."""
        from . import pickling

        namespace, path = self._main.__dict__, str(frame["path"])
        lost: list[str] = []
        try:
            if frame["op"] == "pack":
                _, lost = pickling.pack(namespace, self._engine.hidden, path)
            else:
                pickling.unpack(namespace, path)
        except Exception as error:  # noqa: BLE001 -- a user's __reduce__ or __setstate__ may raise anything
            lost = ["all variables (%s: %s)" % (type(error).__name__, error)]
        self._reply(frame, lost=lost)

    def save(self, frame: Frame) -> None:
        """Write the variables to a file in a forked copy, so that no block waits for it."""
        from . import pickling

        line = self.channel.take_descriptors(1)
        if line:
            limits = int(frame["most"]), float(frame["seconds"])
            arguments = self._main.__dict__, self._engine.hidden, str(frame["path"]), *limits
            with self.interrupts:
                self._snapshots.run_apart(line[0], limits[1], lambda: pickling.save(*arguments))

    # -- engine and streams ----------------------------------------------------------------------------------

    def _make_engine(self) -> Any:
        shared = (self.report, self._lines, self._loop, self._figures, self.interrupts.user_code)
        if os.environ.pop(ENGINE, "ipython") != "bare":
            try:
                from .ipython import IPythonEngine
            except ImportError:
                pass  # not installed, or too old
            else:
                return IPythonEngine(self._main, *shared)
        from .bare import Bare

        engine = Bare(self._main.__dict__, *shared)
        builtins.display = engine.display  # type: ignore[attr-defined]
        return engine

    def _replace_streams(self) -> None:

        def write_error(text: str) -> None:
            flush(self._stdout)
            self.report.stream("stderr", text)

        self._stderr = Output("stderr", 2, write_error)
        self._threaded = Output("stdout", 1, lambda text: self.report.stream("stdout", text))
        self._stdin = Input(self.report.ask)
        self._stdout = plain_output("stdout", 1)
        self.report.flush = self._flush
        sys.stdout = sys.__stdout__ = self._stdout  # type: ignore[misc]
        sys.stderr = sys.__stderr__ = self._stderr  # type: ignore[assignment, misc]
        sys.stdin = sys.__stdin__ = self._stdin  # type: ignore[misc]
        builtins.input = make_input(self.report.ask)

    def _choose_stdout(self, threads: bool) -> None:
        """Choose line-wise output if threads of an earlier block may print, since each line must name its block."""
        if sys.stdout is self._stdout or sys.stdout is self._threaded:
            sys.stdout = self._threaded if threads else self._stdout

    def _flush_everything(self) -> None:
        flush(self._stdout)
        self._threaded.flush_everything()
        self._stderr.flush_everything()
        if "ctypes" in sys.modules:
            try:
                sys.modules["ctypes"].CDLL(None).fflush(None)  # output of C code so far belongs to this block
            except (OSError, AttributeError):
                pass  # there is no C library

    # -- forks of the user's code ----------------------------------------------------------------------------

    def _flush(self) -> None:
        if not self._snapshots.forking:
            for stream in (self._stdout, self._threaded, self._stderr):
                flush(stream)

    def _leave(self) -> None:
        """Write to the descriptors without a connection to the host, in a process that the user's code forked."""
        if not self._snapshots.forking:
            self.report.forked = True
            self.channel.leave()
            self.interrupts.leave()
            self._choose_stdout(threads=False)


def flush(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError, RuntimeError):
        pass  # closed by the user's code, or during a write that a signal handler interrupted
