"""The command `interpreter`: reads its arguments, and prints something or starts a front end."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence

from interpreter import leaves, packages
from interpreter.errors import InterpreterError

# Flags that print something and end.
_PRINTING = frozenset({"models", "policy_check", "doctor", "profiles", "reset_profile", "install"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code (see exit_codes.py)."""
    gc.set_threshold(20_000)  # collecting garbage, of which there is none yet, takes an eighth of the start
    atexit.register(gc.freeze)  # and Python's own collection at exit another eighth
    return run_program("interpreter", _run, list(sys.argv[1:] if argv is None else argv))


def run_program(name: str, run: Callable[[list[str]], int], arguments: list[str]) -> int:
    """Run one of our programs and return its exit code; print errors as a line on standard error."""
    try:
        return run(arguments)
    except InterpreterError as error:
        from interpreter.console_text import visible
        from interpreter.frontends.exit_codes import code_for

        print(f"{name}: {visible(str(error))}", file=sys.stderr)
        return code_for(error)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader has closed the pipe; buffered output must not cause an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - people get a line, not a traceback
        from interpreter.console_text import visible
        from interpreter.frontends.terminal.chat import fault

        print(visible(fault(error, "--debug" in arguments)), file=sys.stderr)
        return 1


def version_line() -> str:
    from interpreter.version import __version__

    return f"Open Interpreter {__version__} Developer Preview"


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:  # answered without loading the settings
        print(version_line())
        return 0
    from interpreter.frontends import flags

    prog = os.path.basename(sys.argv[0])
    if prog != "i" and (row := leaves.subcommand(arguments)) is not None:
        _unwind_on_signals()
        return int(leaves.load(row.run)(arguments))
    if prog != "i" and (front_end := _front_end(arguments)) is not None:
        _unwind_on_signals()
        return int(packages.load(front_end)(arguments[1:]))
    parsed = flags.parse(arguments, prog)
    match parsed.actions:
        case {"version": _}:
            print(version_line())
            return 0
        case {"help": _}:
            print(flags.help_text())
            return 0
        case {"completion": shell}:
            print(flags.completion_script(shell))
            return 0
        case actions if _PRINTING & actions.keys():
            from interpreter.frontends.commands import run_command

            return run_command(parsed)
    for notice in parsed.notices:
        print(notice, file=sys.stderr)
    _unwind_on_signals()
    for flag in (flag for leaf in leaves.ROWS for flag in leaf.flags):
        if flag.name in parsed.actions:
            return int(leaves.load(flag.run)(parsed))
    is_chat = parsed.message is None and "stdin" not in parsed.actions
    if is_chat and not parsed.settings.get("plain_text_display"):
        from interpreter.frontends.terminal.tty import hide_early_keys

        hide_early_keys()  # the next line takes most of the start
    from interpreter.frontends.start import start

    return start(parsed)


def _front_end(arguments: list[str]) -> packages.EntryPoint | None:
    """Find the front end of a package that a command line names: a first word, alone or before a flag."""
    if not arguments or arguments[0].startswith("-") or not all(each.startswith("-") for each in arguments[1:2]):
        return None
    return next((each for each in packages.entry_points("front_ends") if each.name == arguments[0]), None)


def _unwind_on_signals() -> None:
    signal.signal(signal.SIGTERM, _leave)
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, _leave)


def _leave(number: int, frame: object) -> None:
    """Unwind on SIGTERM and SIGHUP, so that the terminal and the runtimes are left in order."""
    prompt = sys.modules.get("interpreter.frontends.terminal.prompt")
    if prompt is None or not prompt.leave(128 + number):
        raise SystemExit(128 + number)
