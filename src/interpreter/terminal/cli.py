"""The command line: from arguments to a chat, a single turn, or a line of text."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interpreter.core import OpenInterpreter
    from interpreter.terminal.flags import Parsed
    from interpreter.terminal.terminal import Terminal

_NOTHING_ELSE = frozenset({"profiles", "reset_profile", "conversations", "server"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; its exit code: 0, 1 after an error, 2 for a wrong command line, 130 after Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    from interpreter.errors import InterpreterError, UsageError

    try:
        return _run(arguments)
    except UsageError as error:
        print(f"interpreter: {error}", file=sys.stderr)
        return 2
    except InterpreterError as error:
        print(f"interpreter: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone; what is still buffered must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - people get a line, not a traceback
        from interpreter.terminal.chat import fault

        print(fault(error, "--debug" in arguments), file=sys.stderr)
        return 1


def _run(arguments: list[str]) -> int:
    from interpreter.terminal.flags import parse, version_line

    parsed = parse(arguments, os.path.basename(sys.argv[0]))
    if "version" in parsed.actions:
        print(version_line())
        return 0
    if "help" in parsed.actions:
        from interpreter.terminal.usage import help_text

        print(help_text())
        return 0
    if "models" in parsed.actions:
        from interpreter.terminal.models import list_models

        return list_models(parsed)
    if "local_models" in parsed.actions:
        from interpreter.terminal.folders import open_models

        open_models()
        return 0
    for notice in parsed.notices:
        print(notice, file=sys.stderr)
    if _NOTHING_ELSE & parsed.actions.keys():
        return 1
    signal.signal(signal.SIGTERM, _leave)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, _leave)
    return _talk(parsed)


def _talk(parsed: Parsed) -> int:
    from interpreter.terminal.terminal import Terminal

    interpreter = configured(parsed)
    terminal = Terminal(plain=interpreter.plain_text_display or "stdin" in parsed.actions)
    try:
        message = _message(parsed, terminal)
        if not _model_ready(parsed, terminal, interpreter):
            return 1
        if message is None:
            return _chat(terminal, interpreter)
        return _say(terminal, interpreter, message)
    finally:
        if "computer" in vars(interpreter):
            interpreter.computer.terminate()


def _model_ready(parsed: Parsed, terminal: Terminal, interpreter: OpenInterpreter) -> bool:
    from interpreter.terminal import setup

    if "local" in parsed.actions:
        setup.remember_local(interpreter)
        return True
    return setup.ready(terminal, interpreter, anew="setup" in parsed.actions)


def configured(parsed: Parsed) -> OpenInterpreter:
    """An interpreter with the settings of the environment and the command line."""
    from interpreter.core import OpenInterpreter
    from interpreter.settings import SETTINGS, apply, from_environment

    interpreter = OpenInterpreter()
    interpreter.in_terminal_interface = True
    if not sys.stdin.isatty() and not sys.stdout.isatty():
        headless = {row.name: row.headless for row in SETTINGS if row.headless is not None}
        apply(interpreter, headless, "default")
    apply(interpreter, from_environment(os.environ), "environment")
    apply(interpreter, parsed.settings, "flag")
    if parsed.shortcut:
        interpreter.custom_instructions = shortcut_instructions()
    return interpreter


def shortcut_instructions() -> str:
    """What the model is told when somebody wants one thing done quickly, with a look at the folder."""
    from pathlib import Path

    words = (Path(__file__).parent / "shortcut.md").read_text(encoding="utf-8").strip()
    names = sorted(os.listdir())
    listed = "\n".join(names[:100]) or "(nothing)"
    more = f"\n(and {len(names) - 100} more)" if len(names) > 100 else ""
    return f"{words}\n\nIn {os.getcwd()}:\n{listed}{more}"


def _message(parsed: Parsed, terminal: Terminal) -> str | None:
    """What there is to say without a chat: the words, or all of standard input."""
    from interpreter.errors import UsageError

    if parsed.message is not None:
        return parsed.message
    if terminal.tty.can_type:
        return sys.stdin.readline().rstrip("\n") if "stdin" in parsed.actions else None
    sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
    text = sys.stdin.read().strip()
    if not text:
        raise UsageError("There is no message: standard input is empty.")
    terminal.tty.type_at_terminal()
    return text


def _chat(terminal: Terminal, interpreter: OpenInterpreter) -> int:
    from interpreter.errors import MissingKeyError
    from interpreter.terminal.chat import converse
    from interpreter.terminal.intro import ask_for_key, explained, greet, no_model

    error = no_model(interpreter)
    if error is not None:
        terminal.error(explained(error))
        if not isinstance(error, MissingKeyError) or not ask_for_key(terminal, interpreter):
            return 1
    greet(terminal, interpreter)
    for _ in converse(terminal, interpreter):
        pass
    return 0


def _say(terminal: Terminal, interpreter: OpenInterpreter, message: str) -> int:
    from interpreter.terminal.chat import answer

    for _ in answer(terminal, interpreter, message):
        pass
    if terminal.unanswered:
        print("Not run: nobody was there to say yes. Use -y to run code without asking.", file=sys.stderr)
    if terminal.interrupted:
        return 130
    return 1 if terminal.failed or terminal.unanswered else 0


def _leave(number: int, frame: object) -> None:
    """Told to end: unwind, so that the terminal and the sessions are put in order."""
    prompt = sys.modules.get("interpreter.terminal.prompt")
    if prompt is None or not prompt.leave(128 + number):
        raise SystemExit(128 + number)
