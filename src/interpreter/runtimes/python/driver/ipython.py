"""Runs blocks with IPython's InteractiveShell: magics, rich displays, await and good tracebacks."""

from __future__ import annotations

import builtins
import os
import re
from contextlib import contextmanager
from functools import partial
from subprocess import CalledProcessError
from types import SimpleNamespace

import IPython
import traitlets
from IPython.core import interactiveshell
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from .displays import sendable
from .execution import (
    OURS,
    clean,
    exit_code,
    first_line,
    formatted,
    run_command,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any, ContextManager, Dict, Iterator, List, Optional, Tuple

    from .channel import Report
    from .displays import Figures
    from .execution import ActiveLines, EventLoop

if IPython.version_info[:2] < (7, 20):
    raise ImportError("IPython is too old")
if hasattr(interactiveshell, "PickleShareDB"):
    interactiveshell.PickleShareDB = lambda path: {}  # older ones make a folder for it at once

HIDDEN = (OURS, os.path.dirname(os.path.abspath(IPython.__file__)) + os.sep)
OF_A_BLOCK = re.compile(r'^  File "<ipython-input-(\d+)-\w+>", line (\d+)(?:, in <module>)?', re.MULTILINE)
LONGEST_TRACEBACK = 100  # frames; IPython takes a millisecond for each


class IPythonEngine:
    """One shell for the whole session."""

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
        Shell.report, Shell.lines, Shell.loop, Shell.user_code = report, lines, loop, user_code
        self._shell = shell = Shell.instance(config=config, user_module=main, user_ns=main.__dict__)
        image = shell.display_formatter.formatters["image/png"]
        image.for_type_by_name("matplotlib.figure", "Figure", figures.png)
        shell.register_magic_function(no_matplotlib, "line", "matplotlib")
        for name in ("bash", "sh"):
            shell.register_magic_function(partial(shell.script, name), "cell", name)
        self._transforms = self._transforms_now()

    def run(self, code: str, colors: bool = False) -> Optional[BaseException]:
        """Run a block, telling what it says; the error that ended it, if one did."""
        shell = self._shell
        wanted = "linux" if colors else "nocolor"
        if shell.colors.lower() != wanted:
            shell.colors = wanted
        self._lines.begin(offset=leading_empty_lines(code))
        shell.depth = 0
        result = shell.run_cell(code, store_history=True)
        shell.forget_outputs()
        error: Optional[BaseException] = result.error_before_exec or result.error_in_exec
        return error

    def warm(self) -> None:
        """Read a block, and run nothing: after a fork, what that writes to is copied now, while nobody waits."""
        if self._transforms_now() == self._transforms:  # the user's own are not called for nothing
            try:
                self._shell.compile.ast_parse(self._shell.transform_cell("0"), "<warm>")
            except Exception:  # noqa: BLE001 -- the user put something else into the place of what it needs
                return

    def _transforms_now(self) -> List[Any]:
        of, more = self._shell.input_transformer_manager, self._shell.input_transformers_post
        return [*of.cleanup_transforms, *of.line_transforms, *of.token_transformers, *more]

    @property
    def hidden(self) -> Dict[str, Any]:
        """Names that are in the namespace and not the user's."""
        found: Dict[str, Any] = self._shell.user_ns_hidden
        return found

    def tell(self, error: BaseException) -> None:
        self._shell.tell(error)


class Publisher(DisplayPublisher):  # type: ignore[misc]
    """display() and its like."""

    def publish(
        self,
        data: Dict[str, Any],
        metadata: Optional[Dict[str, Any]] = None,
        *_: Any,
        transient: Optional[Dict[str, Any]] = None,
        update: bool = False,
        **__: Any,
    ) -> None:
        Shell.report.display(sendable(data), (transient or {}).get("display_id"), update)

    def clear_output(self, wait: bool = False) -> None:
        Shell.report.clear(wait)


class ResultHook(DisplayHook):  # type: ignore[misc]
    """The value of a block's last expression."""

    def write_output_prompt(self) -> None:
        """There are no prompts here."""

    def write_format_data(self, format_dict: Dict[str, Any], md_dict: Any = None) -> None:
        Shell.report.display(sendable(format_dict))

    def finish_displayhook(self) -> None:
        self._is_active = False


class Shell(InteractiveShell):  # type: ignore[misc]
    """The shell of IPython, speaking through the driver."""

    report: Report
    lines: ActiveLines
    loop: EventLoop
    user_code: ContextManager[None]

    def __init__(self, **arguments: Any) -> None:
        self.depth = 0  # of run_cell() within run_cell()
        self._starts: List[int] = []  # where the statements begin that are still to run
        super().__init__(displayhook_class=ResultHook, display_pub_class=Publisher, **arguments)
        self.InteractiveTB.tb_offset = 0  # our frames are taken out by name
        self.loop_runner = self.loop.run

    # -- no traces on the disk -------------------------------------------------------------------------------

    profile_dir = traitlets.Any()  # a folder that IPython would make, were it a real one

    def init_ipython_dir(self, ipython_dir: Any) -> None:
        """No folder: nothing is kept between sessions."""

    def init_profile_dir(self, profile_dir: Any) -> None:
        self.profile_dir = SimpleNamespace(location=os.devnull)
        self.db: Dict[str, Any] = {}

    def init_user_ns(self) -> None:
        super().init_user_ns()
        kept = {"exit": builtins.exit, "quit": builtins.quit, "open": open}  # Python's own do what is wanted here
        self.user_ns.update(kept)
        self.user_ns_hidden.update(kept)

    # -- running ---------------------------------------------------------------------------------------------

    async def run_ast_nodes(self, nodelist: List[Any], *arguments: Any, **options: Any) -> Any:
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
        except BaseException as error:  # noqa: BLE001 -- whatever the user's code raises, SystemExit too
            self._failed(error, result)
            return True
        finally:
            self.depth -= 1
        return False

    def _failed(self, error: BaseException, result: Any) -> None:
        if self.loop.was_interrupted(error):
            error = KeyboardInterrupt().with_traceback(error.__traceback__)
        if result is not None:
            result.error_in_exec = error
        self.tell(error)

    def tell(self, error: BaseException) -> None:
        """Say what went wrong."""
        if isinstance(error, KeyboardInterrupt):
            self.report.flush()
            plain = formatted(error, HIDDEN)  # the host waits, and IPython takes its time
            self.report.stream("stderr", OF_A_BLOCK.sub(r"Cell In[\1], line \2", plain))
        elif not isinstance(error, SystemExit):
            self.showtraceback((type(error), error, error.__traceback__), running_compiled_code=True)
        elif exit_code(error) == 1 and not isinstance(error.code, int):
            self.report.stream("stderr", "%s\n" % (error.code,))

    def system(self, cmd: str) -> None:
        """`!cmd`: it writes to the block's own descriptors."""
        self.report.flush()
        self.user_ns["_exit_code"] = run_command(self.var_expand(cmd, depth=1))

    def script(self, program: str, line: str, cell: str) -> None:
        """`%%bash`: like `!cmd`; IPython's own would leave a thread behind."""
        if line.strip():
            self.run_cell_magic("script", program + " " + line, cell)
            return
        self.report.flush()
        code = run_command(cell)
        if code:
            raise CalledProcessError(code, program)

    # -- tracebacks ------------------------------------------------------------------------------------------

    def _get_exc_info(self, exc_tuple: Any = None) -> Tuple[Any, Any, Any]:
        _, value, traceback = super()._get_exc_info(exc_tuple)
        if isinstance(value, BaseException):
            value.__traceback__ = traceback
            clean(value, HIDDEN, LONGEST_TRACEBACK)
            traceback = value.__traceback__
        found: Tuple[Any, Any, Any] = super()._get_exc_info((type(value), value, traceback))
        return found

    def _showtraceback(self, etype: Any, evalue: Any, stb: List[str]) -> None:
        self.report.flush()
        self.report.stream("stderr", self.InteractiveTB.stb2text(stb) + "\n")

    # -- IPython 9 would keep all output and every traceback in memory ---------------------------------------

    @contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        yield

    def _format_exception_for_storage(self, exception: BaseException, **_: Any) -> Dict[str, Any]:
        return {"ename": type(exception).__name__, "evalue": str(exception), "traceback": []}

    def forget_outputs(self) -> None:
        outputs = getattr(self.history_manager, "outputs", None)
        if outputs:
            outputs.clear()


def leading_empty_lines(code: str) -> int:
    """How many lines IPython takes away at the top."""
    return next((count for count, line in enumerate(code.splitlines()) if line.strip()), 0)


def no_matplotlib(line: str) -> None:
    """`%matplotlib`: figures are shown as they are."""
