"""Runs blocks with IPython's InteractiveShell: magics, rich displays, await and good tracebacks."""

from __future__ import annotations

import builtins
import os
import re
from contextlib import contextmanager
from functools import partial
from subprocess import CalledProcessError
from types import CodeType, ModuleType, SimpleNamespace

import IPython
import traitlets
from IPython.core import interactiveshell
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from .channel import Report
from .displays import DATA_FRAME, Figures, TablePage, sendable
from .execution import ActiveLines, EventLoop, clean, first_line, formatted, run_command
from .hints import Any, ContextManager, Iterator
from .interrupts import OURS

if IPython.version_info[:2] < (7, 20):
    raise ImportError("IPython is too old")
if hasattr(interactiveshell, "PickleShareDB"):
    interactiveshell.PickleShareDB = lambda path: {}  # older versions make a folder for it at once

HIDDEN = (OURS, os.path.dirname(os.path.abspath(IPython.__file__)) + os.sep)
OF_A_BLOCK = re.compile(r'^  File "<ipython-input-(\d+)-\w+>", line (\d+)(?:, in <module>)?', re.MULTILINE)
MAX_TRACEBACK_FRAMES = 100  # frames; IPython takes a millisecond for each


class IPythonEngine:
    name = "ipython"

    def __init__(
        self,
        main: ModuleType,
        report: Report,
        lines: ActiveLines,
        loop: EventLoop,
        figures: Figures,
        user_code: ContextManager[None],
    ) -> None:
        self._lines = lines
        config = Config()
        config.HistoryManager.enabled = False  # it would start a thread
        config.InteractiveShell.colors = "nocolor"
        DriverShell.report, DriverShell.lines, DriverShell.loop, DriverShell.user_code = report, lines, loop, user_code
        self._shell = shell = DriverShell.instance(config=config, user_module=main, user_ns=main.__dict__)
        image = shell.display_formatter.formatters["image/png"]
        image.for_type_by_name("matplotlib.figure", "Figure", figures.png)
        for module, name in DATA_FRAME:
            shell.display_formatter.formatters["text/html"].for_type_by_name(module, name, TablePage.of)
        shell.register_magic_function(no_matplotlib, "line", "matplotlib")
        for name in ("bash", "sh"):
            shell.register_magic_function(partial(shell.script, name), "cell", name)
        self._transforms = self._transforms_now()
        self.show_error = shell.show_error
        self.hidden: dict[str, Any] = shell.user_ns_hidden  # names in the namespace that are not the user's

    def run(self, code: str, colors: bool = False) -> BaseException | None:
        shell = self._shell
        wanted = "linux" if colors else "nocolor"
        if shell.colors.lower() != wanted:
            shell.colors = wanted
        empty = (count for count, line in enumerate(code.splitlines()) if line.strip())
        self._lines.begin(offset=next(empty, 0))  # IPython removes empty lines at the top
        shell.depth = 0
        result = shell.run_cell(code, store_history=True)
        outputs = getattr(shell.history_manager, "outputs", None)
        if outputs:
            outputs.clear()  # IPython 9 would keep all output in memory
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    def warm(self) -> None:
        """Parse a block without running it.

        After a fork, this copies the memory that parsing writes to, while there is time.
        """
        if self._transforms_now() == self._transforms:  # not with transforms that the user has added
            try:
                self._shell.run_cell("0", silent=True)
            except Exception:  # noqa: BLE001 -- the user has replaced something that it needs
                return

    def forget(self) -> None:
        """Forget the blocks that have run, except for what they have left in the namespace."""
        history, hook = self._shell.history_manager, self._shell.displayhook
        history.reset()
        history._i00 = history._i = history._ii = history._iii = hook._ = hook.__ = hook.___ = ""
        self._shell.execution_count = 1

    def _transforms_now(self) -> list[Any]:
        of, more = self._shell.input_transformer_manager, self._shell.input_transformers_post
        return [*of.cleanup_transforms, *of.line_transforms, *of.token_transformers, *more]


class ReportingPublisher(DisplayPublisher):  # type: ignore[misc]
    """display() and similar functions."""

    def publish(self, data: dict[str, Any], *_: Any, **__: Any) -> None:
        DriverShell.report.display(sendable(data))

    def clear_output(self, wait: bool = False) -> None:
        """Do nothing: what was shown stays."""


class ResultHook(DisplayHook):  # type: ignore[misc]
    """The value of a block's last expression."""

    def write_output_prompt(self) -> None:
        """Do nothing: there are no prompts here."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        DriverShell.report.display(sendable(format_dict))

    def finish_displayhook(self) -> None:
        self._is_active = False


class DriverShell(InteractiveShell):  # type: ignore[misc]
    """IPython's shell, with its output sent through the driver."""

    report: Report
    lines: ActiveLines
    loop: EventLoop
    user_code: ContextManager[None]

    def __init__(self, **arguments: Any) -> None:
        self.depth = 0  # of run_cell() within run_cell()
        self._starts: list[int] = []  # the first lines of the statements that are still to run
        super().__init__(displayhook_class=ResultHook, display_pub_class=ReportingPublisher, **arguments)
        self.InteractiveTB.tb_offset = 0  # our frames are removed by name
        self.loop_runner = self.loop.run

    # -- nothing on disk --------------------------------------------------------------------------------

    profile_dir = traitlets.Any()  # IPython would create the folder of a real one

    def init_ipython_dir(self, ipython_dir: Any) -> None:
        """Do nothing: no folder is needed, since nothing is kept between runtimes."""

    def init_profile_dir(self, profile_dir: Any) -> None:
        self.profile_dir = SimpleNamespace(location=os.devnull)
        self.db: dict[str, Any] = {}

    def init_user_ns(self) -> None:
        super().init_user_ns()
        kept = {"exit": builtins.exit, "quit": builtins.quit, "open": open}  # Python's versions, not IPython's
        self.user_ns.update(kept)
        self.user_ns_hidden.update(kept)

    # -- running ---------------------------------------------------------------------------------------------

    async def run_ast_nodes(self, nodelist: list[Any], *arguments: Any, **options: Any) -> Any:
        if self.depth == 0:
            self._starts = [first_line(node) for node in nodelist]
        return await super().run_ast_nodes(nodelist, *arguments, **options)

    async def run_code(self, code_obj: CodeType, result: Any = None, *, async_: bool = False) -> bool:
        """Run a statement; True if it failed."""
        self.depth += 1
        try:
            with self.user_code:
                if self.depth == 1:
                    self.lines.enter(code_obj, self._starts.pop(0) if self._starts else 1)
                if async_:
                    await eval(code_obj, self.user_global_ns, self.user_ns)
                else:
                    exec(code_obj, self.user_global_ns, self.user_ns)
        except BaseException as error:  # noqa: BLE001 -- the user's code may raise anything, even SystemExit
            if self.loop.was_interrupted(error):
                error = KeyboardInterrupt().with_traceback(error.__traceback__)
            if result is not None:
                result.error_in_exec = error
            self.show_error(error)
            return True
        finally:
            self.depth -= 1
        return False

    def show_error(self, error: BaseException) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.report.flush()
            plain = formatted(error, HIDDEN)  # the host is waiting, and IPython is slow
            self.report.stream("stderr", OF_A_BLOCK.sub(r"Cell In[\1], line \2", plain))
        elif not isinstance(error, SystemExit):
            self.showtraceback((type(error), error, error.__traceback__), running_compiled_code=True)
        elif error.code is not None and not isinstance(error.code, int):
            self.report.stream("stderr", "%s\n" % (error.code,))

    def system(self, cmd: str) -> None:
        """Run `!cmd`, which writes to the block's own descriptors."""
        self.report.flush()
        self.user_ns["_exit_code"] = run_command(self.var_expand(cmd, depth=1))

    def script(self, program: str, line: str, cell: str) -> None:
        """Run `%%bash` like `!cmd`; IPython's version would leave a thread behind."""
        if line.strip():
            self.run_cell_magic("script", program + " " + line, cell)
            return
        self.report.flush()
        code = run_command(cell)
        if code:
            raise CalledProcessError(code, program)

    # -- tracebacks ------------------------------------------------------------------------------------------

    def _get_exc_info(self, exc_tuple: Any = None) -> tuple[Any, Any, Any]:
        _, value, traceback = super()._get_exc_info(exc_tuple)
        if isinstance(value, BaseException):
            value.__traceback__ = traceback
            clean(value, HIDDEN, MAX_TRACEBACK_FRAMES)
            traceback = value.__traceback__
        exc_info: tuple[Any, Any, Any] = super()._get_exc_info((type(value), value, traceback))
        return exc_info

    def _showtraceback(self, etype: Any, evalue: Any, stb: list[str]) -> None:
        self.report.flush()
        self.report.stream("stderr", self.InteractiveTB.stb2text(stb) + "\n")

    # -- IPython 9 would keep output and tracebacks in memory -----------------------------------------------

    @contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        yield

    def _format_exception_for_storage(self, exception: BaseException, **_: Any) -> dict[str, Any]:
        return {"ename": type(exception).__name__, "evalue": str(exception), "traceback": []}


def no_matplotlib(line: str) -> None:
    """`%matplotlib`: does nothing, since figures are always shown as images."""
